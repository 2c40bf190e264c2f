//go:build linux && cgo

package dcgm

import (
	"context"
	"errors"
	"maps"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/collector/dcgm/dcgmlive"
)

// Profiling counters fill the families of GPM, for GPUs and for MIG instances,
// which are named by their place.
func TestProfiling(t *testing.T) {
	inChild(t, setting{scenario: "h100-8"}, func(s *sampling) {
		s.open(Options{Profiling: ProfilingOn})
		r := s.Until("activity of every GPU", func(r collector.Round, _ error) bool {
			return len(r.Devices) > 8 && allHave(r, collector.ActivityRatio, "sm")
		})
		for _, d := range r.Devices {
			if up, ok := value(d, collector.DCGMProfiling, ""); !ok || up != 1 {
				s.Errorf("%s: profiling is %v, %v", d.ID, up, ok)
			}
			if d.Parent != "" && (!strings.HasPrefix(d.ID, "MIG-"+d.Parent+"/") || !d.Passing) {
				s.Errorf("MIG instance %s of %s", d.ID, d.Parent)
			}
			if d.Parent == "" && (!strings.HasPrefix(d.ID, "GPU-") || d.PCI == "" || d.Model == "" || d.Sampled.IsZero()) {
				s.Errorf("GPU %+v", d)
			}
		}
	})
}

// Without NVML, DCGM fills NVML's families.
func TestAlone(t *testing.T) {
	inChild(t, setting{scenario: "a100"}, func(s *sampling) {
		s.open(Options{Alone: true})
		s.Until("values of every GPU", func(r collector.Round, _ error) bool {
			for _, d := range class(r, collector.GPU) {
				for _, m := range []*collector.Metric{collector.TemperatureCelsius, collector.PowerWatts, collector.EnergyJoules, collector.ThrottleSeconds, collector.MemoryTotal, collector.RowRemaps} {
					if _, ok := value(d, m); !ok {
						return false
					}
				}
				if total, _ := value(d, collector.MemoryTotal); total < 30<<30 || total > 100<<30 {
					s.Fatalf("%s has %v bytes", d.ID, total)
				}
			}
			return len(class(r, collector.GPU)) == 4
		})
	})
}

// Configured fields have DCGM's names; unavailable ones are counted once with the
// reason.
func TestFields(t *testing.T) {
	inChild(t, setting{scenario: "h100-8", faults: [][]string{{"dcgm-field", "155", "not-supported", "all"}, {"dcgm-field", "203", "not-found", "0"}, {"dcgm-field", "204", "808334905", "0"}}}, func(s *sampling) {
		s.open(Options{Fields: []uint16{150, 156, 50, 155, 203, 204, 60, 60000}})
		counted := map[string]uint64{}
		r := s.Until("values", func(r collector.Round, _ error) bool {
			maps.Copy(counted, calls(r))
			if len(class(r, collector.GPU)) != 8 {
				return false
			}
			_, ok := value(r.Devices[1], collector.DCGMFieldTotal)
			return ok && counted["DCGM_FI_DEV_BOARD_POWER_WATTS not_supported"] > 0
		})
		d := class(r, collector.GPU)
		if v, ok := value(d[1], collector.DCGMField, "DCGM_FI_DEV_GPU_TEMP_CELSIUS", "", "celsius"); !ok || v < 10 || v > 110 {
			s.Errorf("temperature %v, %v", v, ok)
		}
		if v, ok := value(d[1], collector.DCGMFieldTotal, "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "", "millijoules"); !ok || v <= 0 {
			s.Errorf("energy %v, %v", v, ok)
		}
		if _, ok := value(d[1], collector.DCGMFieldInfo, "DCGM_FI_DEV_GPU_NAME", d[1].Model); !ok {
			s.Errorf("no name in %v", d[1].Readings)
		}
		if _, ok := value(d[1], collector.DCGMField, "DCGM_FI_DEV_BOARD_POWER_WATTS"); ok {
			s.Error("a value that is not supported is one")
		}
		if v, ok := value(d[0], collector.DCGMField, "DCGM_FI_DEV_GPU_UTIL"); ok {
			s.Errorf("a value that is not found is %v", v)
		}
		if n := len(d[0].Rejects); n == 0 {
			s.Error("a sentinel is not counted")
		}
		for _, name := range []string{"DCGM_FI_DEV_BOARD_POWER_WATTS not_supported", "DCGM_FI_SYSTEM_PCI_TOPOLOGY field_unsupported_by_api", "DCGM_FI_60000 unknown_field"} {
			if counted[name] == 0 {
				s.Errorf("%s is not counted: %v", name, counted)
			}
		}
		if again := calls(s.Round())["DCGM_FI_DEV_BOARD_POWER_WATTS not_supported"]; again != 0 {
			s.Errorf("counted %d times again", again)
		}
	})
}

// Switches and their links, and Grace CPUs, are separate devices.
func TestSwitches(t *testing.T) {
	inChild(t, setting{scenario: "hgx-nvswitch"}, func(s *sampling) {
		s.open(Options{})
		r := s.Until("switches", func(r collector.Round, _ error) bool {
			list := class(r, collector.Switch)
			for _, d := range list {
				if _, ok := value(d, collector.NVLinkErrors); !ok {
					return false
				}
			}
			return len(list) > 0
		})
		for _, d := range class(r, collector.Switch) {
			if d.ID == "" || d.ID != d.PCI || !strings.HasPrefix(d.ID, "0000:") {
				s.Errorf("switch %q at %q", d.ID, d.PCI)
			}
			if v, ok := value(d, collector.TemperatureCelsius, "switch"); !ok || v < 10 {
				s.Errorf("%s: temperature %v, %v", d.ID, v, ok)
			}
			if v, ok := value(d, collector.NVLinkUp, "0"); !ok || v != 1 {
				s.Errorf("%s: link 0 is %v, %v", d.ID, v, ok)
			}
			if _, ok := value(d, collector.NVLinkErrors, "0", "fatal"); !ok {
				s.Errorf("%s: no fatal errors of link 0", d.ID)
			}
		}
		s.Inject("dcgm-part", "switch:0", "fatal_error", "12028")
		s.Until("an SXid", func(collector.Round, error) bool { return len(s.Events) > 0 })
		if e := <-s.Events; e.Kind != collector.EventSXid || e.Code != 12028 || e.Sub != collector.SubFatal || e.Device != class(r, collector.Switch)[0].ID {
			s.Errorf("event %+v", e)
		}
	})
}

func TestGrace(t *testing.T) {
	inChild(t, setting{scenario: "grace"}, func(s *sampling) {
		s.open(Options{Fields: []uint16{1120, 1110}}) // 1110 also has its own family
		r := s.Until("CPUs", func(r collector.Round, _ error) bool {
			list := class(r, collector.CPU)
			if len(list) == 0 {
				return false
			}
			_, use := value(list[0], collector.CPUUtilization, "user")
			_, core := value(list[0], collector.DCGMField, "DCGM_FI_DEV_CPU_CLOCK_CURRENT", "core-0", "kilohertz")
			return use && core
		})
		d := class(r, collector.CPU)[0]
		if d.ID != "cpu-0" {
			s.Errorf("CPU %q", d.ID)
		}
		series := map[string]bool{}
		for _, x := range d.Readings {
			key := x.Metric.Name + strings.Join(x.Labels, ",")
			if series[key] {
				s.Errorf("%s is there twice", key)
			}
			series[key] = true
		}
		for _, m := range []*collector.Metric{collector.TemperatureCelsius, collector.PowerWatts, collector.PowerLimit} {
			if v, ok := value(d, m); !ok || v <= 0 {
				s.Errorf("%s: %v, %v", m.Name, v, ok)
			}
		}
	})
}

// Failures are reported with their cause.
func TestRefusals(t *testing.T) {
	address, _ := ParseAddress("localhost:5555")
	for name, c := range map[string]struct {
		set  setting
		o    Options
		want error
		text string
	}{
		"no library":       {setting{scenario: "h100-8", none: true}, Options{}, collector.ErrEngine, "LD_LIBRARY_PATH"},
		"another version":  {setting{scenario: "h100-8", faults: [][]string{{"dcgm-error", "dcgmInit", "VER_MISMATCH"}}}, Options{}, collector.ErrMismatch, "ver_mismatch"},
		"a function less":  {setting{scenario: "h100-8", missing: []string{"dcgmWatchFields"}}, Options{}, collector.ErrMismatch, "has no dcgmWatchFields"},
		"no host engine":   {setting{scenario: "h100-8", faults: [][]string{{"dcgm-engine", "down"}}}, Options{Address: address}, collector.ErrEngine, "dcgmConnect_v2 tcp://localhost:5555: connection_not_valid"},
		"engine not begun": {setting{scenario: "h100-8", faults: [][]string{{"dcgm-error", "dcgmStartEmbedded", "INIT_ERROR"}}}, Options{}, collector.ErrEngine, "dcgmStartEmbedded: init_error"},
	} {
		t.Run(name, func(t *testing.T) {
			inChild(t, c.set, func(s *sampling) {
				s.leaks = true
				s.open(c.o)
				if _, err := s.Sample(time.Minute); !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
					s.Errorf("%v, want %v with %q", err, c.want, c.text)
				}
			})
		})
	}
}

// Without a function of the library, what needs it is absent and the rest is
// present.
func TestOlderLibrary(t *testing.T) {
	missing := []string{"dcgmHealthSet", "dcgmProfGetSupportedMetricGroups", "dcgmGetGpuInstanceHierarchy", "dcgmGetNvLinkLinkStatus", "dcgmGetCpuHierarchy", "dcgmGetGpuStatus", "dcgmHostengineVersionInfo"}
	inChild(t, setting{scenario: "hgx-nvswitch", missing: missing}, func(s *sampling) {
		s.open(Options{Profiling: ProfilingOn, Fields: []uint16{150, 1120}})
		s.Until("temperatures", func(r collector.Round, err error) bool {
			if err != nil {
				s.Fatal(err)
			}
			list := class(r, collector.GPU)
			if len(list) == 0 {
				return false
			}
			_, gpu := value(list[0], collector.DCGMField)
			_, sw := value(class(r, collector.Switch)[0], collector.TemperatureCelsius)
			return gpu && sw
		})
	})
}

// When the host engine ends, the connection does too: a new process is
// required, whatever call failed.
func TestEngineGoes(t *testing.T) {
	for _, c := range []struct {
		how    string
		fields []uint16 // none: beside NVML no value is read
	}{{"down", []uint16{150}}, {"restart", []uint16{150}}, {"disconnect", []uint16{150}}, {"down", nil}} {
		t.Run(c.how, func(t *testing.T) {
			inChild(t, setting{scenario: "h100-8"}, func(s *sampling) {
				s.leaks = true
				address, _ := ParseAddress("unix:///run/nv-hostengine")
				s.open(Options{Address: address, Fields: c.fields})
				s.Round()
				s.source.engine.nextLook = time.Now().Add(time.Hour) // the list of devices does not notice it first
				s.Inject("dcgm-engine", c.how)
				r := s.Until("an end", func(_ collector.Round, err error) bool { return err != nil })
				if _, err := s.Sample(time.Minute); !errors.Is(err, collector.ErrEngine) {
					s.Errorf("%v", err)
				}
				if len(r.Devices) != 0 {
					s.Error("devices of a host engine that has ended")
				}
			})
		})
	}
}

// When another tool occupies or pauses profiling, only the counters are absent,
// with a reason, and they return.
func TestProfilingHeld(t *testing.T) {
	for state, reasons := range map[string]string{"in-use": "in_use paused refused", "paused": "paused"} {
		t.Run(state, func(t *testing.T) {
			t.Parallel()
			inChild(t, setting{scenario: "h100-8", faults: [][]string{{"dcgm-profiling", state}}}, func(s *sampling) {
				s.open(Options{Profiling: ProfilingOn, Fields: []uint16{150}})
				s.Until("the reason", func(r collector.Round, _ error) bool {
					for _, d := range class(r, collector.GPU) {
						for _, x := range d.Readings {
							switch x.Metric {
							case collector.ActivityRatio:
								s.Fatalf("%s: %v", d.ID, x)
							case collector.DCGMProfiling:
								return x.Value == 0 && strings.Contains(reasons, x.Labels[0])
							}
						}
					}
					return false
				})
				s.Until("the temperature all the same", func(r collector.Round, _ error) bool {
					_, ok := value(r.Devices[0], collector.DCGMField)
					return ok
				})
				s.Inject("dcgm-profiling", "free")
				s.Until("the counters", func(r collector.Round, _ error) bool {
					_, ok := value(class(r, collector.GPU)[0], collector.ActivityRatio, "sm")
					return ok
				})
			})
		})
	}
}

// Before the first health check there is no state; afterwards every watch has
// one.
func TestHealth(t *testing.T) {
	inChild(t, setting{scenario: "h100-8"}, func(s *sampling) {
		s.open(Options{HealthInterval: time.Millisecond})
		if _, ok := value(s.Round().Devices[0], collector.DCGMHealth); ok {
			s.Error("a state before the first check")
		}
		s.Inject("xid", "48", "2")
		failed := func(r collector.Round, _ error) bool {
			bad := false
			for _, d := range class(r, collector.GPU) {
				ones := 0
				for _, x := range d.Readings {
					if x.Metric == collector.DCGMHealth && x.Value == 1 {
						ones++
						// DCGM files this Xid under no system.
						bad = bad || x.Labels[0] == "all" && x.Labels[1] == "fail"
					}
				}
				if ones != 0 && ones != 11 {
					s.Fatalf("%s: %d states of 11 watches", d.ID, ones)
				}
			}
			return bad
		}
		s.Until("a failure", failed)
		// DCGM reports the Xid in one check.
		for range 3 {
			if !failed(s.Round(), nil) {
				s.Error("the failure has gone with the next check")
			}
		}
	})
}

// Without NVML, an Xid is an event, once; that of a MIG instance names the GPU and
// the instance. An Xid from before the first round is none.
func TestXidAlone(t *testing.T) {
	inChild(t, setting{scenario: "h100-8", faults: [][]string{{"xid", "31", "3"}}}, func(s *sampling) {
		s.open(Options{Alone: true})
		gpus := class(s.Round(), collector.GPU)
		s.Round()
		for _, c := range []struct {
			fault     []string
			code      uint64
			gpu       int
			partition bool
		}{{[]string{"79", "3"}, 79, 3, false}, {[]string{"94", "4", "--gi=2"}, 94, 4, true}} {
			s.Inject(append([]string{"xid"}, c.fault...)...)
			s.Until("the event", func(collector.Round, error) bool { return len(s.Events) > 0 })
			if e := <-s.Events; e.Kind != collector.EventXid || e.Code != c.code || e.Device != gpus[c.gpu].ID || (e.Partition != "") != c.partition {
				s.Errorf("Xid %v: event %+v", c.fault, e)
			}
		}
		s.Round()
		s.Round()
		if len(s.Events) > 0 {
			s.Errorf("again: %+v", <-s.Events)
		}
	})
}

// After a thousand changes of the entities there are as many groups and watches
// as after the first, after Close none, and the process has not grown.
func TestNothingIsLeft(t *testing.T) {
	inChild(t, setting{scenario: "h100-8"}, func(s *sampling) {
		s.open(Options{Profiling: ProfilingOn, Fields: []uint16{150, 156, 203, 50}})
		s.Round()
		first, simulated := dcgmlive.Now()
		if !simulated || first.Groups == 0 || first.Watches == 0 {
			s.Fatalf("%+v, %v", first, simulated)
		}
		e := s.source.engine
		var grown [2]uint64
		for i := range 1000 {
			if c := e.build(time.Now()); c != ok {
				s.Fatalf("build %d: %s", i, c)
			}
			if i == 100 || i == 999 {
				grown[min(i/500, 1)] = heap()
			}
		}
		s.Round()
		last, _ := dcgmlive.Now()
		if last.Groups > first.Groups || last.FieldGroups > first.FieldGroups || last.Watches > first.Watches {
			s.Errorf("%+v, then %+v", first, last)
		}
		if grown[1] > grown[0]+4<<20 {
			s.Errorf("heap of %d bytes, then %d", grown[0], grown[1])
		}
		if err := s.source.Close(); err != nil {
			s.Error(err)
		}
		if end, _ := dcgmlive.Now(); end != (dcgmlive.Objects{}) {
			s.Errorf("left: %+v", end)
		}
		if _, err := s.Sample(time.Minute); err == nil {
			s.Error("a round after Close")
		}
	})
}

// heap is the memory in use after a collection.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// Close does not wait for a call that hangs.
func TestCloseOfAHang(t *testing.T) {
	inChild(t, setting{scenario: "h100-8"}, func(s *sampling) {
		s.leaks = true
		s.open(Options{Fields: []uint16{150}})
		s.Round()
		s.Inject("dcgm-hang", "--call=dcgmEntitiesGetLatestValues")
		var returned atomic.Int64
		go func() { // the library may notice the fault a few calls later
			for err := error(nil); err == nil; _, err = s.source.Sample(context.Background()) {
				returned.Add(1)
			}
		}()
		for last, held := int64(0), 0; held < 1000; held++ {
			if n := returned.Load(); n != last {
				last, held = n, 0
			}
			time.Sleep(time.Millisecond)
		}
		if err := s.source.Close(); err == nil {
			s.Error("closed while a call hangs")
		}
	})
}
