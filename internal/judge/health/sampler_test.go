package health_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/judge/health"
)

// source is a Source with the devices that a test sets.
type source struct {
	name  string
	round atomic.Pointer[collector.Round]
}

func (s *source) Name() string { return s.name }
func (s *source) Close() error { return nil }
func (s *source) Sample(context.Context) (collector.Round, error) {
	r := s.round.Load()
	if r == nil {
		return collector.Round{}, collector.ErrDriver
	}
	out := collector.Round{}
	for _, d := range r.Devices {
		d.Sampled = time.Now()
		d.Readings = append([]collector.Reading(nil), d.Readings...)
		out.Devices = append(out.Devices, d)
	}
	return out, nil
}

func (s *source) set(d ...collector.Device) { s.round.Store(&collector.Round{Devices: d}) }

// covers is what each source sees of the node.
var covers = map[string][]collector.Cover{
	"nvidia": {{Class: collector.GPU, Vendor: "nvidia"}},
	"pcie":   {{Class: collector.GPU, Bus: true}},
}

// sample runs a Sampler with a Judge until the end of the test.
func sample(t *testing.T, interval time.Duration, sources ...*source) *collector.Sampler {
	s := collector.NewSampler(collector.Settings{Interval: interval, ForgetAfter: time.Hour})
	for _, src := range sources {
		s.Add(src, covers[src.name]...)
	}
	s.AddJudge(health.New(health.Builtin(), health.Options{}))
	var running sync.WaitGroup
	running.Go(func() { s.Run(t.Context()) })
	t.Cleanup(running.Wait)
	return s
}

// TestInSampler runs the Judge in a Sampler. The PCI core reports a GPU before the
// driver does. The kernel log reports faults by PCI address, and NVML by UUID.
func TestInSampler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nvml, bus, log := &source{name: "nvidia"}, &source{name: "pcie"}, &source{name: "kernellog"}
		s := sample(t, time.Second, nvml, bus, log)

		expect := func(after time.Duration, id, want string) {
			t.Helper()
			time.Sleep(after)
			synctest.Wait()
			snap := s.Latest()
			consistent(t, snap)
			for i := range snap.Devices {
				if d := &snap.Devices[i]; d.ID == id {
					if got := verdict(d); got != want {
						t.Errorf("%s is %s, want %s", id, got, want)
					}
					return
				}
			}
			t.Errorf("no %s", id)
		}
		card := collector.Device{ID: gpuID, Class: collector.GPU, Vendor: "nvidia", PCI: gpuAt}
		seen := collector.Device{ID: gpuAt, PCI: gpuAt, Class: collector.GPU, Vendor: "nvidia", Witness: true}
		fault := collector.Event{Source: "kernellog", PCI: gpuAt, Kind: collector.EventXid, Code: 119}

		s.Emit(collector.Event{Source: "kernellog", PCI: gpuAt, Kind: collector.EventXid, Code: 62, Past: true, Time: time.Now().Add(-time.Hour)})
		bus.set(seen)
		expect(3*time.Second, gpuAt, "failed reset xid_62 no_answer")
		nvml.set(card)
		expect(3*time.Second, gpuID, "failed reset xid_62")
		s.Emit(collector.Event{Source: "kernellog", Kind: collector.EventDriverLoaded})
		expect(time.Second, gpuID, "healthy none")
		s.Emit(collector.Event{Source: "nvidia", Device: gpuID, Kind: collector.EventXid, Code: 119})
		s.Emit(fault)
		expect(time.Second, gpuID, "failed reset xid_119")

		s.Emit(collector.Event{Source: "kernellog", Kind: collector.EventDriverLoaded})
		nvml.set()
		expect(2*time.Minute, gpuID, "failed reboot device_missing not_in_driver no_answer")
		nvml.set(card)
		expect(5*time.Second, gpuID, "healthy none")
		bus.set(collector.Device{ID: "0000:99:00.0", PCI: "0000:99:00.0", Class: collector.GPU, Vendor: "nvidia", Witness: true})
		expect(time.Minute, gpuID, "failed reboot not_on_bus")
		expect(time.Minute, "0000:99:00.0", "failed inspect not_in_driver no_answer")
	})
}
