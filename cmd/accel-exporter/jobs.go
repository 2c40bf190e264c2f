package main

import (
	"context"
	"log/slog"
	"os"
	"time"

	"github.com/accel-exporter/accel-exporter/collector/solo"
	"github.com/accel-exporter/accel-exporter/internal/compat"
)

// jobsPoll is the interval at which the job directory is read.
const jobsPoll = 2 * time.Second

// followJobs updates the view from the job directory until ctx is done. A read
// that hangs blocks only this function's reader.
func (d *dcgmFields) followJobs(ctx context.Context) {
	reader := solo.New(func(time.Time) *compat.Jobs { return readJobs(d.flags.jobs) }, nil)
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

// readJobs reads the job directory. Links that lead out of it are not followed:
// others write to it, and its content is on the page.
func readJobs(dir string) *compat.Jobs {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return compat.ReadJobs(os.DirFS(dir)) // fails too, and is counted
	}
	defer root.Close()
	return compat.ReadJobs(root.FS())
}

// applyJobs replaces the jobs if they have changed, and logs rejected entries.
func (d *dcgmFields) applyJobs(jobs *compat.Jobs) {
	before := d.jobs.Load()
	if before.Equal(jobs) {
		return
	}
	d.jobs.Store(jobs)
	d.render()
	if was, is := before.Rejected(), jobs.Rejected(); len(was) > 0 || len(is) > 0 {
		level := slog.LevelInfo
		if len(is) > 0 {
			level = slog.LevelWarn
		}
		d.log.Log(context.Background(), level, "Entries rejected in the job directory, by reason", "dir", d.flags.jobs, "rejected", is)
	}
}
