package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/collector/solo"
	"github.com/accel-exporter/accel-exporter/collector/sysfs"
	"github.com/accel-exporter/accel-exporter/internal/identity"
	"github.com/accel-exporter/accel-exporter/internal/judge/health"
)

// identities are the identities of devices that an earlier process knew.
type identities struct {
	store *identity.Store // nil without --path.state
	log   *slog.Logger

	recalled []collector.Device // of the file
	content  []byte             // to be written
	changed  bool
	writer   *solo.Worker[error]
	failed   bool
}

// writePatience bounds the last write when the exporter ends.
const writePatience = time.Second

// writeInterval is the minimum time between two writes of the file.
const writeInterval = 10 * time.Second

func openIdentities(dir string, f *sourceFlags, log *slog.Logger) (*identities, error) {
	ids := &identities{log: log}
	if dir == "" {
		return ids, nil
	}
	boot, err := sysfs.New(f.procfs).ReadText("sys/kernel/random/boot_id", 64)
	if err != nil {
		log.Warn("Faults are not remembered over a restart: the boot has no ID", "err", err)
	}
	store, err := identity.Open(dir, sysfs.New(f.sysfs), boot)
	if err != nil {
		return nil, fmt.Errorf("--path.state: %w", err)
	}
	ids.store = store
	if ids.recalled, err = store.Load(time.Now()); err != nil {
		log.Error("Identities and faults of devices from before are not known: the file is refused", "err", err)
	}
	return ids, nil
}

// remember adds the faults that an earlier process left to the options of the judge.
func (ids *identities) remember(o *health.Options) {
	o.Since = time.Now()
	if ids.store != nil {
		if faults, energy, since := ids.store.Faults(); !since.IsZero() {
			o.Faults, o.Energy, o.Since = faults, energy, since
		}
	}
}

// run follows the Snapshots until ctx is done. A write may hang; it delays
// nothing, and the file is complete at any time.
func (ids *identities) run(ctx context.Context, s *collector.Sampler) {
	if ids.store != nil {
		ids.writer = solo.New(func(time.Time) error { return ids.store.Write(ids.content) }, func() { ids.store.Close() })
		defer ids.writer.Stop()
	}
	follow(ctx, s, func(_, snap *collector.Snapshot) {
		ids.save(snap)
	})
	ids.flush()
}

// flush writes what has not been written yet, for a moment.
func (ids *identities) flush() {
	if !ids.changed {
		return
	}
	end := make(chan struct{})
	time.AfterFunc(writePatience, func() { close(end) })
	if _, done := ids.writer.Await(end); done || !ids.writer.Busy {
		ids.content = ids.store.Encode()
		ids.writer.Start(time.Now())
		_, _ = ids.writer.Await(end) // or not, at the end of the time
	}
}

// save writes the file where it has changed.
func (ids *identities) save(snap *collector.Snapshot) {
	if ids.store == nil {
		return
	}
	ids.changed = ids.store.Note(snap) || ids.changed
	if err, done := ids.writer.Poll(); done {
		switch {
		case err != nil && !ids.failed:
			ids.log.Error("Identities of devices cannot be written, so they will not be known after a restart", "err", err)
		case err == nil && ids.failed:
			ids.log.Info("Identities of devices are written again")
		}
		ids.failed, ids.changed = err != nil, ids.changed || err != nil
	}
	if ids.changed && !ids.writer.Busy && time.Since(ids.writer.Asked) >= writeInterval {
		ids.content, ids.changed = ids.store.Encode(), false
		ids.writer.Start(time.Now())
	}
}
