package main

import (
	"context"
	"log/slog"
	"os"
	"time"

	"github.com/accel-exporter/accel-exporter/collector/solo"
	"github.com/accel-exporter/accel-exporter/internal/compat"
)

// jobsPoll is how often the folder of jobs is read.
const jobsPoll = 2 * time.Second

// followJobs updates the view from the folder of jobs until ctx is done. A file
// system that hangs blocks nothing else.
func (d *dcgmFields) followJobs(ctx context.Context) {
	folder := os.DirFS(d.flags.jobs)
	reader := solo.New(func(time.Time) *compat.Jobs { return compat.ReadJobs(folder) }, nil)
	defer reader.Stop()
	tick := time.NewTicker(jobsPoll)
	defer tick.Stop()
	for {
		reader.Start(time.Now())
		if jobs, ok := reader.Await(ctx.Done()); ok {
			d.applyJobs(jobs)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// applyJobs replaces the jobs where they differ, and logs rejected files.
func (d *dcgmFields) applyJobs(jobs *compat.Jobs) {
	before := d.jobs.Load()
	if before.Equal(jobs) {
		return
	}
	d.jobs.Store(jobs)
	d.render()
	if was, is := before.Rejected(), jobs.Rejected(); len(was) > 0 || len(is) > 0 {
		d.log.Log(context.Background(), rejectLevel(is), "Files rejected in the folder of jobs, by reason", "dir", d.flags.jobs, "rejected", is)
	}
}

func rejectLevel(rejected map[string]int) slog.Level {
	if len(rejected) > 0 {
		return slog.LevelWarn
	}
	return slog.LevelInfo
}
