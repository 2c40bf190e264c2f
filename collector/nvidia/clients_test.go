//go:build linux && cgo

package nvidia

import (
	"slices"
	"testing"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/sim/golden"
)

// client returns a process of d with its readings.
func client(d collector.Device, pid int) (c collector.Client, memory, compute float64, measured bool) {
	i := slices.IndexFunc(d.Clients, func(c collector.Client) bool { return c.PID == pid })
	if i < 0 {
		return c, 0, 0, false
	}
	c = d.Clients[i]
	for _, r := range c.Readings {
		switch {
		case r.Metric == collector.MemoryUsed:
			memory = r.Value
		case r.Metric == collector.UtilizationRatio && r.Labels[0] == "compute":
			compute, measured = r.Value, true
		}
	}
	return c, memory, compute, measured
}

// The processes of a GPU are reported with their use; the processes of a MIG
// device are reported at the MIG device and not at its GPU; an unused GPU has
// an empty list.
func TestClients(t *testing.T) {
	inChild(t, "h100-8", nil, func(s *sampling) {
		r := s.Until("use by process", func(r collector.Round, _ error) bool {
			_, _, _, measured := client(gpus(r)[0], 21001)
			return measured
		})
		train, shared, sliced, free := gpus(r)[0], gpus(r)[3], gpus(r)[4], gpus(r)[7]
		if c, memory, compute, _ := client(train, 21001); c.Type != "compute" || memory != 71680<<20 || compute <= 0 || compute > 1 {
			s.Errorf("the training process: %+v", c)
		}
		if len(shared.Clients) != 2 {
			s.Errorf("the shared GPU has %+v", shared.Clients)
		}
		if c, _, _, _ := client(shared, 31002); c.Type != "mps" {
			s.Errorf("the server of MPS: %+v", c)
		}
		if sliced.Clients != nil {
			s.Errorf("the sliced GPU has %+v", sliced.Clients)
		}
		part := partsOf(r, sliced.ID)[0]
		if _, memory, _, measured := client(part, 41001); memory != 30720<<20 || measured {
			s.Errorf("the slice has %+v", part.Clients)
		}
		if free.Clients == nil || len(free.Clients) != 0 {
			s.Errorf("the free GPU has %+v", free.Clients)
		}
	})
}

// A driver that writes longer records than go-nvml gives it room for is not asked
// for processes, and nothing else is missing.
func TestProcessRecords(t *testing.T) {
	for version, asked := range map[string]bool{"535.54.03": false, "535.104.05": true} {
		t.Run(version, func(t *testing.T) {
			inChild(t, "h100-8", [][]string{{"driver-reload", "--driver=" + version}}, func(s *sampling) {
				shared := gpus(s.Round())[3]
				if got := len(shared.Clients); (got == 2) != asked || (shared.Clients == nil) == asked {
					s.Errorf("the shared GPU has %+v", shared.Clients)
				}
				if _, err := value(shared, collector.PowerWatts); err != nil {
					s.Error(err)
				}
			})
		})
	}
}

// busyGPU runs process 1 all the time. Timestamps of the driver are times of day.
type busyGPU struct {
	nvml.Device
	now time.Time
}

func (g *busyGPU) GetProcessUtilization(last uint64) ([]nvml.ProcessUtilizationSample, nvml.Return) {
	at := uint64(g.now.UnixMicro())
	if at <= last {
		return nil, nvml.ERROR_NOT_FOUND
	}
	return []nvml.ProcessUtilizationSample{{Pid: 1, TimeStamp: at, SmUtil: 50}}, nvml.SUCCESS
}

// After the clock was set, a process at work is not shown as idle.
func TestUtilizationAfterClockSet(t *testing.T) {
	for _, by := range []time.Duration{5 * time.Hour, -5 * time.Hour} {
		a := newAsker(&library{has: slices.Repeat([]bool{true}, len(calls))}, &round{})
		g, start, c := new(busyGPU), time.Now(), clients{list: []collector.Client{{PID: 1}}}
		for i := range 20 {
			if g.now = start.Add(time.Duration(i) * time.Second); i >= 10 {
				g.now = golden.SetClock(g.now, by)
			}
			c.readUtilization(&a, g, g.now)
			d := collector.Device{Clients: c.clients(g.now)}
			if _, _, compute, _ := client(d, 1); compute != 0.5 {
				t.Errorf("by %v, second %d: %v", by, i, d.Clients)
			}
		}
	}
}
