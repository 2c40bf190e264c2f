//go:build linux && cgo

package nvidia

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/collector/sysfs"
)

const (
	// idleShare is the utilization below which a GPU without processes is idle.
	idleShare = 0.05
	// defaultDelay is the delay of a suspend where the kernel has none.
	defaultDelay = 10 * time.Second
)

// sleep is what runtime power management of the kernel does with a GPU. Every call
// of NVML to a suspended GPU wakes it.
type sleep struct {
	// before is the last answer of calls, at is when they were made.
	before gpuAnswer
	at     time.Time
}

// asleep returns the answer of a GPU that no call may wake: it is suspended, or was
// idle and is left alone for longer than the delay after which it is suspended.
// Nothing but attributes that the kernel has in memory is read.
func (g *gpu) asleep(now time.Time) (gpuAnswer, bool) {
	if g.ill || g.lib.sysfs == "" || len(g.known) == 0 || g.known[0].PCI == "" {
		return gpuAnswer{}, false
	}
	if !now.Before(g.nextSuspends) {
		g.nextSuspends, g.suspends = now.Add(identityInterval), g.maySuspend()
	}
	if !g.suspends {
		return gpuAnswer{}, false
	}
	read := func(name string) string {
		s, _ := sysfs.New(g.lib.sysfs).Read("bus/pci/devices/" + g.known[0].PCI + "/power/" + name)
		return s
	}
	last := &g.sleep
	switch read("runtime_status") {
	case "suspended", "suspending":
	case "active":
		if last.at.IsZero() || !last.before.idle() || read("control") != "auto" {
			return gpuAnswer{}, false
		}
		delay := defaultDelay
		if ms, err := strconv.Atoi(read("autosuspend_delay_ms")); err == nil && ms > 0 {
			delay = time.Duration(ms) * time.Millisecond
		}
		if now.Sub(last.at) >= 3*delay {
			return gpuAnswer{}, false
		}
		return last.before.again(), true
	default:
		return gpuAnswer{}, false
	}
	g.gpm.drop()
	g.mig.dropSamples()
	last.at = time.Time{}
	a := gpuAnswer{known: g.known, mig: last.before.mig, direct: last.before.direct}
	for _, d := range g.known {
		d.Readings, d.Sampled = slices.Clone(d.Readings), now
		a.devices = append(a.devices, d)
	}
	return a, true
}

// answered remembers an answer of calls.
func (g *gpu) answered(a gpuAnswer, now time.Time) {
	a.calls, a.err = nil, nil
	g.sleep = sleep{before: a.again(), at: now}
}

// again returns the answer with devices that its receiver may change, and without what
// was counted.
func (a gpuAnswer) again() gpuAnswer {
	a.devices = slices.Clone(a.devices)
	for i := range a.devices {
		a.devices[i].Rejects = nil
	}
	return a
}

// maySuspend reports whether the driver suspends the GPU. On a server, control is often
// auto for a GPU that the driver never suspends; its file in /proc then has the status Disabled.
func (g *gpu) maySuspend() bool {
	if g.lib.procfs == "" {
		return true
	}
	text, err := sysfs.New(g.lib.procfs).Read(filepath.Join(procGPUs, g.known[0].PCI, "power"))
	_, status, found := strings.Cut(text, "Runtime D3 status:")
	return err != nil || !found || strings.HasPrefix(strings.TrimSpace(status), "Enabled")
}

// idle reports whether nothing runs on the GPU.
func (a *gpuAnswer) idle() bool {
	if len(a.devices) == 0 {
		return false
	}
	known := false
	for _, d := range a.devices {
		if len(d.Clients) > 0 {
			return false
		}
		for _, r := range d.Readings {
			if r.Metric == collector.UtilizationRatio && slices.Equal(r.Labels, labelCompute) {
				if r.Value >= idleShare {
					return false
				}
				known = true
			}
		}
	}
	return known
}
