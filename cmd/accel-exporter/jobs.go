package main

import (
	"context"
	"log/slog"
	"os"
	"time"

	"github.com/accel-exporter/accel-exporter/collector/solo"
	"github.com/accel-exporter/accel-exporter/internal/compat"
)

// jobsPoll is how often the folder of jobs is looked at.
const jobsPoll = 2 * time.Second

// followJobs keeps the view up with the folder of jobs. A file system that
// hangs holds up nothing but this.
func (d *dcgmFields) followJobs(ctx context.Context) {
	folder := os.DirFS(d.flags.jobs)
	reader := solo.New(func(time.Time) *compat.Jobs { return compat.ReadJobs(folder) }, nil)
	defer reader.Stop()
	tick := time.NewTicker(jobsPoll)
	defer tick.Stop()
	for {
		reader.Start(time.Now())
		if jobs, ok := reader.Await(ctx.Done()); ok {
			d.takeJobs(jobs)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// takeJobs puts the jobs of a look into force where they differ, and logs it
// when something of the folder begins or ceases to be left out.
func (d *dcgmFields) takeJobs(jobs *compat.Jobs) {
	before := d.jobs.Load()
	if before.Equal(jobs) {
		return
	}
	d.jobs.Store(jobs)
	d.render()
	d.shown()
	if was, is := before.Rejected(), jobs.Rejected(); len(was) > 0 || len(is) > 0 {
		d.log.Log(context.Background(), rejectLevel(is), "What is left out of the folder of jobs, by the reason", "dir", d.flags.jobs, "rejected", is)
	}
}

func rejectLevel(rejected map[string]int) slog.Level {
	if len(rejected) > 0 {
		return slog.LevelWarn
	}
	return slog.LevelInfo
}
