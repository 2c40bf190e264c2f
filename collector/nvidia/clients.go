//go:build linux && cgo

package nvidia

import (
	"math"
	"slices"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/accel-exporter/accel-exporter/collector"
)

var (
	callCompute  = function("nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2", "nvmlDeviceGetComputeRunningProcesses")
	callGraphics = function("nvmlDeviceGetGraphicsRunningProcesses_v3", "nvmlDeviceGetGraphicsRunningProcesses_v2", "nvmlDeviceGetGraphicsRunningProcesses")
	callMPS      = function("nvmlDeviceGetMPSComputeRunningProcesses_v3", "nvmlDeviceGetMPSComputeRunningProcesses_v2", "nvmlDeviceGetMPSComputeRunningProcesses")

	callProcessUtilization = define(call{name: "nvmlDeviceGetProcessUtilization", quiet: nvml.ERROR_NOT_FOUND})
)

var (
	labelCompute  = []string{"compute"}
	labelGraphics = []string{"graphics"}
	labelMPS      = []string{"mps"}
	labelMemory   = []string{"memory"}
	labelEncoder  = []string{"encoder"}
	labelDecoder  = []string{"decoder"}
)

const (
	// processInterval is the time between two reads of the process list and of
	// the utilization by process, which takes a driver two milliseconds.
	processInterval = 4 * time.Second
	// othersRarely is how many reads have one of graphics and MPS processes, while there
	// are none.
	othersRarely = 3
	// sampleWindow is how long a utilization sample of a process is valid. The
	// driver takes several samples a second and lists a process only in those
	// during which it ran. A process in none of them was idle.
	sampleWindow = 5 * time.Second
	// memoryUnknown is the driver's value for unknown process memory
	// (NVML_VALUE_NOT_AVAILABLE).
	memoryUnknown = math.MaxUint64
	// idleMemory is more than what the driver uses of an idle GPU, which is 59
	// MiB in MIG mode, and less than what a process does.
	idleMemory = 64 << 20
)

// clients are the processes on a GPU or a MIG device.
type clients struct {
	next time.Time
	// counts and list are the last that were read; list is nil where the driver
	// gives none.
	counts []collector.Reading
	list   []collector.Client
	// reads counts the reads. others are the counts of processes that do not compute,
	// present is whether there were any.
	reads   int
	others  []collector.Reading
	present bool

	// samples are the last sample of each process. The driver's timestamps are
	// in microseconds.
	samples map[int]processSample
	stamp   uint64
	since   time.Time // the start of the gapless sequence of answers
}

type processSample struct {
	at                                time.Time
	compute, memory, encoder, decoder uint32
}

// read lists and counts the processes when that is due, and reports whether it
// was. Outside the host's PID namespace (foreign), the driver lists none of the
// host's.
func (c *clients) read(d *collector.Device, a *asker, h nvml.Device, now time.Time, foreign bool) (due bool) {
	if due = !now.Add(processInterval / 10).Before(c.next); due {
		c.next = now.Add(processInterval)
		c.counts, c.list = nil, []collector.Client{}
		whole := c.ask(a, callCompute, h.GetComputeRunningProcesses, labelCompute)
		if c.present || c.reads%othersRarely == 0 {
			counts, n := len(c.counts), len(c.list)
			c.ask(a, callGraphics, h.GetGraphicsRunningProcesses, labelGraphics)
			c.ask(a, callMPS, h.GetMPSComputeRunningProcesses, labelMPS)
			c.others, c.present = slices.Clone(c.counts[counts:]), len(c.list) > n
		} else {
			c.counts = append(c.counts, c.others...)
		}
		c.reads++
		if !whole {
			c.list = nil // the list is incomplete
		} else if foreign && len(c.list) == 0 && !idle(d) {
			c.counts, c.list = nil, nil
		}
	}
	d.Readings = append(d.Readings, c.counts...)
	return due
}

// idle reports whether d shows that no process uses it: little memory is
// allocated, and it does nothing.
func idle(d *collector.Device) bool {
	known := false
	for _, r := range d.Readings {
		switch r.Metric {
		case collector.MemoryUsed:
			known = r.Value <= idleMemory
			if !known {
				return false
			}
		case collector.UtilizationRatio:
			if r.Value > 0 {
				return false
			}
		}
	}
	return known
}

func (c *clients) ask(a *asker, call *call, f func() ([]nvml.ProcessInfo, nvml.Return), labels []string) bool {
	list, ok := ask(a, call, f)
	if !ok {
		return false
	}
	c.counts = append(c.counts, collector.Reading{Metric: collector.Processes, Labels: labels, Value: float64(len(list))})
	for _, p := range list {
		client := collector.Client{PID: int(p.Pid), Type: labels[0]}
		if p.UsedGpuMemory != memoryUnknown && collector.MemoryUsed.Range.Contains(float64(p.UsedGpuMemory)) {
			client.Readings = []collector.Reading{{Metric: collector.MemoryUsed, Value: float64(p.UsedGpuMemory)}}
		}
		c.list = append(c.list, client)
	}
	return true
}

// readUtilization reads the utilization of each process since the previous
// call.
func (c *clients) readUtilization(a *asker, h nvml.Device, now time.Time) {
	if len(c.list) == 0 || a.never(callProcessUtilization) {
		c.samples, c.since = nil, time.Time{}
		return
	}
	var ret nvml.Return
	list, ok := ask(a, callProcessUtilization, func() ([]nvml.ProcessUtilizationSample, nvml.Return) {
		var l []nvml.ProcessUtilizationSample
		l, ret = h.GetProcessUtilization(c.stamp)
		return l, ret
	})
	if !ok && ret != callProcessUtilization.quiet {
		c.samples, c.since = nil, time.Time{}
		return
	}
	if !ok {
		list = nil // a buffer that the driver has not filled
	}
	if c.since.IsZero() {
		c.since = now
	}
	if c.samples == nil {
		c.samples = map[int]processSample{}
	}
	// After the clock was set back, later samples are older than the last one.
	latest := uint64(now.Add(sampleWindow).UnixMicro())
	if c.stamp > latest {
		c.stamp = 0
	}
	for _, s := range list {
		if s.Pid == 0 || s.SmUtil > 100 || s.MemUtil > 100 || s.EncUtil > 100 || s.DecUtil > 100 || s.TimeStamp > latest {
			continue // unused entries, and what some drivers return for processes that have just ended, or from before the clock was set back
		}
		c.stamp = max(c.stamp, s.TimeStamp)
		c.samples[int(s.Pid)] = processSample{now, s.SmUtil, s.MemUtil, s.EncUtil, s.DecUtil}
	}
	for pid, s := range c.samples {
		if now.Sub(s.at) > sampleWindow {
			delete(c.samples, pid)
		}
	}
}

// clients returns the processes with their readings.
func (c *clients) clients(now time.Time) []collector.Client {
	if c.list == nil {
		return nil
	}
	out := make([]collector.Client, len(c.list))
	for i, p := range c.list {
		s, ran := c.samples[p.PID]
		if ran || !c.since.IsZero() && now.Sub(c.since) > sampleWindow {
			percent := func(labels []string, v uint32) {
				p.Readings = append(p.Readings, collector.Reading{Metric: collector.UtilizationRatio, Labels: labels, Value: float64(v) / 100})
			}
			p.Readings = slices.Clip(p.Readings)
			percent(labelCompute, s.compute)
			percent(labelMemory, s.memory)
			percent(labelEncoder, s.encoder)
			percent(labelDecoder, s.decoder)
		}
		out[i] = p
	}
	return out
}
