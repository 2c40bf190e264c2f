package main

import (
	"cmp"
	"context"
	"log/slog"
	"slices"

	"github.com/accel-exporter/accel-exporter/collector"
)

// logChanges logs each change of a source's or a device's state once.
func (p *program) logChanges(ctx context.Context) {
	follow(ctx, p.sampler, newChanges(p.log).logSnapshot)
}

// follow calls a function with the latest Snapshot and each that follows, until ctx is
// done. It may miss some.
func follow(ctx context.Context, s *collector.Sampler, call func(*collector.Snapshot)) {
	for {
		next := s.Next()
		if snap := s.Latest(); snap != nil {
			call(snap)
		}
		select {
		case <-next:
		case <-ctx.Done():
			return
		}
	}
}

// changes are the states that have been logged. The lines about one subject are
// limited: a device can come and go every second.
type changes struct {
	log     *slog.Logger
	lines   flood
	sources map[string]string // Reason by source
	devices map[string]*loggedDevice
}

// loggedDevice is what was logged of a device.
type loggedDevice struct {
	about   string // of the lines about it
	down    string
	refused map[string]bool // by call
}

func newChanges(log *slog.Logger) *changes {
	return &changes{log: log, lines: flood{log: log}, sources: map[string]string{}, devices: map[string]*loggedDevice{}}
}

// logSnapshot logs the changes since the previous Snapshot.
func (c *changes) logSnapshot(snap *collector.Snapshot) {
	for _, s := range snap.Sources {
		before, known := c.sources[s.Source]
		if known && before == s.Reason || s.Reason == collector.SourceStarting {
			continue
		}
		c.sources[s.Source] = s.Reason
		switch about := "source " + s.Source; {
		case !c.lines.allow(about):
		case s.Up:
			c.log.Info("Source answers", "collector", s.Source)
		case s.Reason == collector.SourceReleased:
			c.log.Info("Source is released", "collector", s.Source)
		case s.Reason == collector.SourceAbsent:
			c.log.Info("Source has nothing to read", "collector", s.Source, "reason", s.Reason, "err", s.Err)
		default:
			c.log.Error("Source fails", "collector", s.Source, "reason", s.Reason, "err", s.Err)
		}
	}
	for i := range snap.Devices {
		c.logDevice(&snap.Devices[i])
	}
	for id, d := range c.devices {
		present, renamed := has(snap, id)
		if present {
			continue
		}
		delete(c.devices, id)
		if !renamed && c.lines.allow(d.about) {
			c.log.Info("Device is gone", "device", id)
		}
	}
}

// logDevice logs the changes of a device. Those of partitions are limited
// together, since each partition that is created has an id of its own.
func (c *changes) logDevice(d *collector.Device) {
	before, known := c.devices[d.ID]
	if before == nil {
		before = &loggedDevice{about: "device " + cmp.Or(d.Parent, d.PCI, d.ID)}
		c.devices[d.ID] = before
	}
	c.logRefusals(d, before)
	if known && before.down == d.Down {
		return
	}
	before.down = d.Down
	switch {
	case !c.lines.allow(before.about):
	case d.Down != "":
		c.log.Error("Device fails", "device", d.ID, "reason", d.Down)
	case known:
		c.log.Info("Device answers again", "device", d.ID)
	default:
		c.log.Info("Device found", "device", d.ID, "model", d.Model, "pci", d.PCI, "parent", d.Parent)
	}
}

// logRefusals logs each call that the driver begins to refuse for the device. A
// device that fails reports none, which does not end them.
func (c *changes) logRefusals(d *collector.Device, logged *loggedDevice) {
	var refused map[string]bool
	for _, r := range d.Readings {
		if r.Metric != collector.CallRefused {
			continue
		}
		call := r.Labels[0]
		if refused == nil {
			refused = map[string]bool{}
		}
		if refused[call] = true; logged.refused[call] || !c.lines.allow(logged.about) {
			continue
		}
		lost, remedy := explainRefusal(call)
		c.log.Warn("Driver refuses a call", "device", d.ID, "call", call, "code", r.Labels[1], "missing", lost, "remedy", remedy)
	}
	if d.Down == "" {
		logged.refused = refused
	}
}

// has reports whether a device is in the Snapshot, or has been renamed: a device
// has its PCI address as its name until its driver reports a UUID.
func has(snap *collector.Snapshot, id string) (present, renamed bool) {
	for i := range snap.Devices {
		d := &snap.Devices[i]
		if d.ID == id {
			return true, false
		}
		renamed = renamed || d.PCI == id || slices.Contains(d.Functions, id)
	}
	return false, renamed
}
