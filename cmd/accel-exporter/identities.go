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
)

// identities are the identities of devices that an earlier process and the
// kubelet know.
type identities struct {
	store *identity.Store // nil without --path.state
	log   *slog.Logger

	found   string // the last one found by elimination
	content []byte // to be written
	changed bool
	writer  *solo.Worker[error]
	failed  bool
}

// writePatience bounds the last write when the exporter ends.
const writePatience = time.Second

// writeInterval is the minimum time between two writes of the file.
const writeInterval = 10 * time.Second

func openIdentities(f *flags, log *slog.Logger) (*identities, error) {
	ids := &identities{log: log}
	if f.stateDir == "" {
		return ids, nil
	}
	store, err := identity.Open(f.stateDir, sysfs.New(f.sources.sysfs))
	if err != nil {
		return nil, fmt.Errorf("--path.state: %w", err)
	}
	ids.store = store
	return ids, nil
}

// recall gives the devices of the file to the Sampler.
func (ids *identities) recall(s *collector.Sampler) {
	if ids.store == nil {
		return
	}
	devices, err := ids.store.Load(time.Now())
	if err != nil {
		ids.log.Error("Identities of devices from before are not known: the file is refused", "err", err)
	}
	s.Recall(devices...)
}

// run follows the Snapshots until ctx is done. A write may hang; it delays
// nothing, and the file is complete at any time.
func (ids *identities) run(ctx context.Context, s *collector.Sampler, p *pods) {
	if ids.store != nil {
		ids.writer = solo.New(func(time.Time) error { return ids.store.Write(ids.content) }, func() { ids.store.Close() })
		defer ids.writer.Stop()
	}
	follow(ctx, s, func(_, snap *collector.Snapshot) {
		ids.eliminate(snap, s, p)
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
		ids.writer.Await(end)
	}
}

func (ids *identities) eliminate(snap *collector.Snapshot, s *collector.Sampler, p *pods) {
	if p.kubelet == nil {
		return
	}
	if d, ok := identity.ByElimination(snap, p.kubelet.Latest()); ok {
		if ids.found != d.ID {
			ids.log.Info("Device has the only UUID of the kubelet that no other device has", "device", d.ID, "pci", d.PCI)
		}
		ids.found = d.ID
		s.Recall(d)
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
