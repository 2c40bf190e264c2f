package main

import (
	"context"
	"log/slog"
	"slices"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/collector/nvidia"
)

// logChanges logs each change of a source's or a device's state once.
func (p *program) logChanges(ctx context.Context) {
	c := changes{log: p.log, sources: map[string]string{}, devices: map[string]string{}, refused: map[string]bool{}}
	for {
		next := p.sampler.Next()
		if snap := p.sampler.Latest(); snap != nil {
			c.logSnapshot(snap)
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
	log     *slog.Logger
	sources map[string]string // Reason by source
	devices map[string]string // Down by device
	refused map[string]bool   // by device and call
}

// logSnapshot logs the changes since the previous Snapshot.
func (c *changes) logSnapshot(snap *collector.Snapshot) {
	for _, s := range snap.Sources {
		before, known := c.sources[s.Source]
		if known && before == s.Reason || s.Reason == collector.SourceStarting {
			continue
		}
		c.sources[s.Source] = s.Reason
		switch {
		case s.Up:
			c.log.Info("Source answers", "collector", s.Source)
		case s.Reason == collector.SourceAbsent, s.Reason == collector.SourceReleased:
			c.log.Info("Source has nothing to read", "collector", s.Source, "reason", s.Reason, "err", s.Err)
		default:
			c.log.Error("Source fails", "collector", s.Source, "reason", s.Reason, "err", s.Err)
		}
	}
	for i := range snap.Devices {
		d := &snap.Devices[i]
		c.logRefusals(d)
		before, known := c.devices[d.ID]
		if known && before == d.Down {
			continue
		}
		c.devices[d.ID] = d.Down
		switch {
		case d.Down != "":
			c.log.Error("Device fails", "device", d.ID, "reason", d.Down)
		case known:
			c.log.Info("Device answers again", "device", d.ID)
		default:
			c.log.Info("Device found", "device", d.ID, "model", d.Model, "pci", d.PCI, "parent", d.Parent)
		}
	}
	for id := range c.devices {
		present, renamed := has(snap, id)
		if present {
			continue
		}
		delete(c.devices, id)
		if !renamed {
			c.log.Info("Device is gone", "device", id)
		}
	}
}

// logRefusals logs each call that the driver refuses for the device, once.
func (c *changes) logRefusals(d *collector.Device) {
	for _, r := range d.Readings {
		if r.Metric != collector.CallRefused {
			continue
		}
		if key := d.ID + " " + r.Labels[0]; !c.refused[key] {
			c.refused[key] = true
			lost, remedy := nvidia.Explain(r.Labels[0])
			c.log.Warn("Driver refuses a call", "device", d.ID, "call", r.Labels[0], "code", r.Labels[1], "missing", lost, "remedy", remedy)
		}
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
