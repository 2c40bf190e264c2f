package main

import (
	"cmp"
	"context"
	"log/slog"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/collector/amd"
	"github.com/accel-exporter/accel-exporter/collector/nvidia"
)

// follow calls a function with the latest Snapshot and each that follows, until ctx is
// done, and with the Snapshot of the call before, nil in the first. It may miss some.
func follow(ctx context.Context, s *collector.Sampler, call func(before, snap *collector.Snapshot)) {
	for before := (*collector.Snapshot)(nil); ; {
		next := s.Next()
		if snap := s.Latest(); snap != nil {
			call(before, snap)
			before = snap
		}
		select {
		case <-next:
		case <-ctx.Done():
			return
		}
	}
}

// changes logs what changes from one Snapshot to the next.
type changes struct{ log *limitedLog }

func (c *changes) logSnapshot(before, snap *collector.Snapshot) {
	for i, s := range snap.Sources {
		if s.Reason == collector.SourceStarting || before != nil && before.Sources[i].Reason == s.Reason {
			continue
		}
		log := c.log.about("source " + s.Source)
		switch {
		case s.Up:
			log.Info("Source answers", "collector", s.Source)
		case s.Reason == collector.SourceReleased:
			log.Info("Source is released", "collector", s.Source)
		case s.Reason == collector.SourceAbsent:
			log.Info("Source has nothing to read", "collector", s.Source, "reason", s.Reason, "err", s.Err)
		default:
			log.Error("Source fails", "collector", s.Source, "reason", s.Reason, "err", s.Err)
		}
	}
	for _, p := range snap.Panics {
		c.log.about("judges").Error("Panic: conclusions are missing from the page; report this line", "panic", p)
	}
	for _, change := range snap.Since(before) {
		c.logDevice(change.Before, change.After)
	}
}

// about returns the log of a device. Lines about partitions are limited together,
// since each partition that is created has a new ID.
func (c *changes) about(d *collector.Device) *slog.Logger {
	return c.log.about("device " + cmp.Or(d.Parent, d.PCI, d.ID))
}

func (c *changes) logDevice(before, d *collector.Device) {
	switch {
	case d == nil:
		c.about(before).Info("Device is gone", "device", before.ID)
	case before != nil && before.Down == d.Down: // its verdict has changed
	case d.Down != "":
		c.about(d).Error("Device fails", "device", d.ID, "reason", d.Down)
	case before != nil:
		c.about(d).Info("Device answers again", "device", d.ID)
	default:
		c.about(d).Info("Device found", "device", d.ID, "model", d.Model, "pci", d.PCI, "parent", d.Parent)
	}
}

// explainRefusal returns what is missing where a call is refused, and what permits it.
func explainRefusal(call string) (lost, remedy string) {
	if call == amd.FDInfo {
		return amd.Lost, amd.Remedy
	}
	return nvidia.Explain(call)
}
