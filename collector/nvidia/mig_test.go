//go:build linux && cgo

package nvidia

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/sim/simtest"
)

// partsOf returns the MIG devices of a GPU.
func partsOf(r collector.Round, parent string) (parts []collector.Device) {
	for _, d := range r.Devices {
		if d.Parent == parent {
			parts = append(parts, d)
		}
	}
	return parts
}

func TestMIG(t *testing.T) {
	inChild(t, "h100-8", [][]string{{"mig", "0", "3g.40gb,1g.10gb"}}, func(s *sampling) {
		r := s.Round()
		gpu := gpus(r)[0]
		parts := partsOf(r, gpu.ID)
		if len(parts) != 2 {
			s.Fatalf("%d MIG devices, want 2", len(parts))
		}
		want(s, gpu, 1, collector.MIGMode, "current")
		want(s, gpu, 1, collector.MIGInstances, "3g.40gb")
		absent(s, gpu, collector.UtilizationRatio, "compute")
		p := parts[0]
		if !strings.HasPrefix(p.ID, "MIG-") || !slices.Contains(p.KubeIDs, "0:0") {
			s.Errorf("%s is also %v", p.ID, p.KubeIDs)
		}
		if labels := p.Readings[0].Labels; labels[9] != "3g.40gb" || !strings.HasPrefix(labels[4], "0:") {
			s.Errorf("info: %v", labels)
		}
		if v, err := value(p, collector.MemoryTotal); err != nil || v <= 0 {
			s.Errorf("memory: %v, %v", v, err)
		}
		for _, m := range []*collector.Metric{collector.TemperatureCelsius, collector.PowerWatts, collector.EnergyJoules} {
			absent(s, p, m)
		}
		s.Until("the means of the instance", func(r collector.Round, _ error) bool {
			_, err := value(partsOf(r, gpu.ID)[1], collector.ActivityRatio, "sm")
			return err == nil
		})
	})
}

// A new shape shows at once: by the event, and on every device.
func TestReshape(t *testing.T) {
	inChild(t, "h100-8", nil, func(s *sampling) {
		gpu := gpus(s.Round())[1].ID
		for _, step := range []struct {
			layout string
			want   int
		}{{"1g.10gb,1g.10gb,1g.10gb", 3}, {"3g.40gb", 1}, {"empty", 0}, {"2g.20gb,1g.10gb", 2}, {"off", 0}} {
			s.Inject("mig", "1", step.layout)
			r := s.Until(step.layout, func(r collector.Round, err error) bool {
				return err == nil && len(partsOf(r, gpu)) == step.want
			})
			for _, p := range partsOf(r, gpu) {
				if _, err := value(p, collector.Processes, "compute"); err != nil {
					s.Errorf("%s has no slow readings: %v", p.ID, err)
				}
			}
			if i := slices.IndexFunc(r.Devices, func(d collector.Device) bool { return d.ID == gpu }); r.Devices[i].Down != "" {
				s.Errorf("down: %s", r.Devices[i].Down)
			}
		}
		s.Until("utilization is back", func(r collector.Round, _ error) bool {
			_, err := value(gpus(r)[1], collector.UtilizationRatio, "compute")
			return err == nil
		})
	})
}

// Two compute instances of one GPU instance share its counters, which then
// belong to neither: the whole GPU has them by instance.
func TestSharedInstance(t *testing.T) {
	inChild(t, "h100-8", [][]string{{"mig", "0", "3g.40gb:1c+2c,1g.10gb"}}, func(s *sampling) {
		gpu := gpus(s.Round())[0].ID
		r := s.Until("the means of the instance that is not shared", func(r collector.Round, _ error) bool {
			return slices.ContainsFunc(partsOf(r, gpu), func(d collector.Device) bool {
				_, err := value(d, collector.OccupancyRatio)
				return err == nil
			})
		})
		parts := partsOf(r, gpu)
		if len(parts) != 3 {
			s.Fatalf("%d MIG devices, want 3", len(parts))
		}
		for _, p := range parts {
			if profile := p.Readings[0].Labels[9]; strings.Contains(profile, "c.") {
				absent(s, p, collector.OccupancyRatio)
			}
		}
	})
}

// awaitRegistration returns when events of every GPU arrive: events from before
// the registration are lost, so it sends one until it arrives.
func (s *sampling) awaitRegistration(device string) {
	s.Helper()
	for end := time.Now().Add(simtest.Patience); time.Now().Before(end); {
		s.Inject("event", "poison", device)
		select {
		case <-s.Events:
			for len(s.Events) > 0 {
				<-s.Events
			}
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
	s.Fatal("never registered")
}

func TestEvents(t *testing.T) {
	inChild(t, "h100-8", [][]string{{"mig", "0", "3g.40gb,1g.10gb"}}, func(s *sampling) {
		r := s.Round()
		s.awaitRegistration("0")
		gpu := gpus(r)[0]
		s.Inject("xid", "94", "0/1")
		e := s.next(collector.EventXid)
		part := partsOf(r, gpu.ID)[1].ID
		if e.Source != Name || e.Code != 94 || e.Device != gpu.ID || e.Partition != part {
			s.Errorf("%+v, want Xid 94 of %s on %s", e, gpu.ID, part)
		}
		s.Inject("xid", "79", "4")
		if e := s.next(collector.EventXid); e.Code != 79 || e.Device != r.Devices[slices.IndexFunc(r.Devices, isIndex("4"))].ID || e.Partition != "" {
			s.Errorf("%+v", e)
		}
	})
}

func isIndex(index string) func(collector.Device) bool {
	return func(d collector.Device) bool { return d.Readings[0].Labels[4] == index }
}

// A lost GPU breaks the set: a new one is made, and the other GPUs' events
// arrive.
func TestEventsOutliveALostGPU(t *testing.T) {
	inChild(t, "h100-8", nil, func(s *sampling) {
		s.Round()
		s.awaitRegistration("0")
		s.Inject("lost", "7")
		lost, failed := false, false
		s.Until("GPU 7 is lost and the set has failed", func(r collector.Round, _ error) bool {
			lost = lost || gpus(r)[7].Down == collector.ReasonLost
			failed = failed || slices.ContainsFunc(r.Calls, func(c collector.CallError) bool { return c.Call == callSetWait.name })
			return lost && failed
		})
		s.awaitRegistration("0")
	})
}

// A MIG device that cannot be listed is not removed.
func TestMIGEnumerationFails(t *testing.T) {
	inChild(t, "h100-8", [][]string{{"mig", "0", "3g.40gb,1g.10gb"}}, func(s *sampling) {
		s.open(Options{SlowInterval: time.Millisecond})
		parts := partsOf(s.Round(), gpus(s.Round())[0].ID)
		s.Inject("error", "nvmlDeviceGetMigDeviceHandleByIndex", "UNKNOWN", "0")
		s.Inject("error", "nvmlDeviceGetMemoryInfo", "UNKNOWN", "0/1")
		r := s.Until("the list fails", func(r collector.Round, _ error) bool {
			listed := slices.ContainsFunc(r.Calls, func(c collector.CallError) bool { return c.Call == callMIGHandle.name })
			now := partsOf(r, gpus(r)[0].ID)
			if len(now) != 2 || now[0].ID != parts[0].ID || now[1].ID != parts[1].ID {
				s.Fatalf("%d MIG devices", len(now))
			}
			return listed && now[1].Down != ""
		})
		now := partsOf(r, gpus(r)[0].ID)
		if now[0].Down != "" || now[1].Down != collector.ReasonError {
			s.Errorf("down: %q, %q", now[0].Down, now[1].Down)
		}
		absent(s, gpus(r)[0], collector.MIGInstances, "1g.10gb")
		s.Clear("0")
		s.Clear("0/1")
		s.Until("both are listed", func(r collector.Round, err error) bool {
			_, missing := value(gpus(r)[0], collector.MIGInstances, "1g.10gb")
			return err == nil && missing == nil
		})
	})
}
