package main

import (
	"cmp"
	"context"
	"slices"

	"github.com/accel-exporter/accel-exporter/collector"
)

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

// changes are the states that have been logged.
type changes struct {
	log     *limitedLog
	sources map[string]string // Reason by source
	devices map[string]*loggedDevice
}

// loggedDevice is what was logged of a device.
type loggedDevice struct {
	about   string // of the lines about it
	down    string
	refused map[string]bool // by call
}

func newChanges(log *limitedLog) *changes {
	return &changes{log: log, sources: map[string]string{}, devices: map[string]*loggedDevice{}}
}

// logSnapshot logs the changes since the previous Snapshot.
func (c *changes) logSnapshot(snap *collector.Snapshot) {
	for _, s := range snap.Sources {
		before, known := c.sources[s.Source]
		if known && before == s.Reason || s.Reason == collector.SourceStarting {
			continue
		}
		c.sources[s.Source] = s.Reason
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
	for i := range snap.Devices {
		c.logDevice(&snap.Devices[i])
	}
	for id, d := range c.devices {
		present, renamed := has(snap, id)
		if present {
			continue
		}
		delete(c.devices, id)
		if !renamed {
			c.log.about(d.about).Info("Device is gone", "device", id)
		}
	}
}

// logDevice logs the changes of a device. Changes of partitions are limited
// together, since each partition that is created has a new id.
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
	log := c.log.about(before.about)
	switch {
	case d.Down != "":
		log.Error("Device fails", "device", d.ID, "reason", d.Down)
	case known:
		log.Info("Device answers again", "device", d.ID)
	default:
		log.Info("Device found", "device", d.ID, "model", d.Model, "pci", d.PCI, "parent", d.Parent)
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
		if refused[call] = true; logged.refused[call] {
			continue
		}
		lost, remedy := explainRefusal(call)
		c.log.about(logged.about).Warn("Driver refuses a call", "device", d.ID, "call", call, "code", r.Labels[1], "missing", lost, "remedy", remedy)
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
