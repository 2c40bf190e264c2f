//go:build linux && cgo

package nvidia

import (
	"slices"
	"testing"

	"github.com/accel-exporter/accel-exporter/collector"
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

// The processes of a GPU are reported with their use; those of a MIG device at
// the MIG device and not at its GPU; an unused GPU has an empty list.
func TestClients(t *testing.T) {
	inChild(t, "h100-8", nil, func(s *sampling) {
		r := s.until("use by process", func(r collector.Round, _ error) bool {
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

// Where the driver gives no process list, the list is nil, not empty.
func TestClientsUnknown(t *testing.T) {
	inChild(t, "h100-8", [][]string{{"not-supported", "nvmlDeviceGetComputeRunningProcesses_v3", "0"}}, func(s *sampling) {
		r := s.round()
		absent(s, gpus(r)[0], collector.Processes, "compute")
		if list := gpus(r)[0].Clients; list != nil {
			s.Errorf("%+v", list)
		}
	})
}
