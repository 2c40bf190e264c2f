//go:build linux && cgo

package nvidia

import (
	"slices"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/accel-exporter/accel-exporter/collector"
)

// readMIGs reads the MIG devices. Readings of the whole board (temperature,
// power) are not repeated on them.
func (g *gpu) readMIGs(now time.Time, slow bool) []collector.Device {
	if len(g.mig.devices) == 0 {
		return nil
	}
	list := make([]collector.Device, 0, len(g.mig.devices))
	var silent []*migDevice
	for _, m := range g.mig.devices {
		d := m.device
		d.Readings = append(make([]collector.Reading, 0, m.size+4), d.Readings...)
		if !g.readMIG(m, &d, now, slow) {
			silent = append(silent, m)
			continue
		}
		m.readRefusals(&d)
		d.Sampled, m.sampled = now, now
		m.size = len(d.Readings)
		list = append(list, d)
	}
	if len(silent) == 0 || g.fatal != nvml.SUCCESS {
		return list
	}
	// It was removed a moment ago, or it fails.
	g.enumerateMIG()
	for _, m := range silent {
		if slices.Contains(g.mig.devices, m) {
			list = down(list, []collector.Device{m.device}, collector.ReasonError, m.sampled)
		}
	}
	return list
}

func (g *gpu) readMIG(m *migDevice, d *collector.Device, now time.Time, slow bool) bool {
	there := readMemory(d, &m.asker, m.handle) || m.never(callMemory) || m.denied(callMemoryV2) || m.denied(callMemory)
	if slow || m.size == 0 {
		k := collector.Device{}
		m.readInstanceECC(&k)
		m.kept, d.Rejects = k.Readings, append(d.Rejects, k.Rejects...)
	}
	d.Readings = append(d.Readings, m.kept...)
	m.clients.read(d, &m.asker, m.handle, now, g.lib.foreign)
	d.Clients = m.clients.clients(now)
	// The counters of a GPU instance belong to none of several compute instances.
	if m.alone && !m.never(callGPMMIGSample) && g.gpmSupported() && m.gpm.prepare(g, &m.asker) {
		m.gpm.read(g, &m.asker, d, now, m.gi)
	}
	return there
}
