//go:build linux && cgo

package nvidia

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/sim/simtest"
)

// identityOnly fails where a device that is down has more than its identity.
func identityOnly(s *sampling, d collector.Device) {
	s.Helper()
	for _, r := range d.Readings {
		if r.Metric.Kind != collector.Info {
			s.Errorf("%s is down and has %s", d.ID, r.Metric.Name)
		}
	}
	if d.Model == "" || len(d.Readings) == 0 {
		s.Errorf("%s is down and has lost its identity", d.ID)
	}
}

func want(s *sampling, d collector.Device, v float64, m *collector.Metric, labels ...string) {
	s.Helper()
	if got, err := value(d, m, labels...); err != nil || got != v {
		s.Errorf("%s %s%v = %v, %v; want %v", d.ID, m.Name, labels, got, err, v)
	}
}

func absent(s *sampling, d collector.Device, m *collector.Metric, labels ...string) {
	s.Helper()
	if got, err := value(d, m, labels...); !errors.Is(err, errAbsentReading) {
		s.Errorf("%s %s%v = %v, %v; want none", d.ID, m.Name, labels, got, err)
	}
}

// An unsupported call is counted once per device and not repeated.
func TestNotSupportedIsRemembered(t *testing.T) {
	inChild(t, "t4", nil, func(s *sampling) {
		refused := 0
		r := s.Round()
		if v, err := value(r.Devices[0], collector.TemperatureMargin, "slowdown"); err != nil || v < -50 || v > 100 {
			s.Errorf("margin to the threshold: %v, %v", v, err)
		}
		for _, c := range r.Calls {
			if c.Code == "not_supported" || c.Code == "invalid_argument" {
				refused++
			} else {
				s.Errorf("%+v", c)
			}
		}
		if refused == 0 {
			s.Error("a T4 supports everything?")
		}
		// Fields that replace missing ones are read in the next round.
		s.Round()
		for range 3 {
			if r := s.Round(); len(r.Calls) != 0 {
				s.Errorf("asked again: %v", r.Calls)
			}
		}
	})
}

// TestSleep: a suspended GPU gets no call and is up, without values.
func TestSleep(t *testing.T) {
	inChild(t, "t4", nil, func(s *sampling) {
		s.open(Options{})
		d := gpus(s.Round())[0]
		dir := filepath.Join(s.source.options.Sysfs, "bus/pci/devices", d.PCI, "power")
		set := func(name, text string) {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text+"\n"), 0o644); err != nil {
				s.Fatal(err)
			}
		}
		temperature := func(r collector.Round) float64 {
			v, _ := value(gpus(r)[0], collector.TemperatureCelsius, "gpu")
			return v
		}
		s.Inject("set", "temperature.gpu", "71", "0")
		s.Until("the first value", func(r collector.Round, _ error) bool { return temperature(r) == 71 })

		set("runtime_status", "suspended")
		asleep := gpus(s.Round())[0]
		if asleep.Down != "" || asleep.ID != d.ID || !asleep.Sampled.After(d.Sampled) {
			s.Errorf("a suspended GPU is down %q, sampled %v", asleep.Down, asleep.Sampled)
		}
		identityOnly(s, asleep)
		if _, err := value(gpus(s.Round())[1], collector.TemperatureCelsius, "gpu"); err != nil {
			s.Error("the other GPU has no temperature")
		}

		set("runtime_status", "active")
		s.Until("the GPU is awake", func(r collector.Round, _ error) bool { return temperature(r) == 71 })
	})
}

// TestIdle: an idle GPU that may be suspended is left alone for three times the delay of
// its suspend.
func TestIdle(t *testing.T) {
	at := time.Now()
	const address = "0000:01:00.0"
	for _, c := range []struct {
		control, delay, d3 string
		used               float64
		clients            []collector.Client
		after              time.Duration
		alone              bool
	}{
		{control: "auto", delay: "5000", after: 14 * time.Second, alone: true},
		{control: "auto", delay: "5000", after: 15 * time.Second},
		{control: "auto", after: 29 * time.Second, alone: true}, // the kernel has no delay
		{control: "auto", delay: "5000", d3: "Runtime D3 status:          Enabled (fine-grained)", alone: true},
		{control: "auto", delay: "5000", d3: "Runtime D3 status:          Disabled by default"},
		{control: "on", delay: "5000"},
		{control: "auto", delay: "5000", used: 0.5},
		{control: "auto", delay: "5000", clients: []collector.Client{{PID: 1}}},
	} {
		root := t.TempDir()
		for name, text := range map[string]string{
			"sys/bus/pci/devices/" + address + "/power/runtime_status":       "active",
			"sys/bus/pci/devices/" + address + "/power/control":              c.control,
			"sys/bus/pci/devices/" + address + "/power/autosuspend_delay_ms": c.delay,
			"proc/" + procGPUs + "/" + address + "/power":                    c.d3,
		} {
			if err := errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o700), os.WriteFile(filepath.Join(root, name), []byte(text+"\n"), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		d := collector.Device{ID: "GPU-a", PCI: address, Clients: c.clients}
		d.Set(collector.UtilizationRatio, c.used, "compute")
		g := &gpu{lib: &library{sysfs: root + "/sys", procfs: root + "/proc"}, known: []collector.Device{d}}
		g.answered(gpuAnswer{devices: []collector.Device{d}}, at)
		if _, alone := g.asleep(at.Add(c.after)); alone != c.alone {
			t.Errorf("%+v: left alone is %t", c, alone)
		}
	}
}

func TestLostAndBack(t *testing.T) {
	inChild(t, "h100-8", nil, func(s *sampling) {
		id := gpus(s.Round())[3].ID
		s.Inject("lost", "3")
		r := s.Until("GPU 3 is lost", func(r collector.Round, err error) bool {
			return err != nil && strings.Contains(err.Error(), id) && gpus(r)[3].Down == collector.ReasonLost
		})
		if len(gpus(r)) != 8 || gpus(r)[3].ID != id {
			s.Fatalf("%d devices, the fourth is %s", len(gpus(r)), gpus(r)[3].ID)
		}
		identityOnly(s, gpus(r)[3])
		want(s, gpus(r)[4], 1, collector.RecoveryAction, "none")
		if !slices.ContainsFunc(r.Calls, func(c collector.CallError) bool { return c.Code == "gpu_is_lost" && c.Count > 0 }) {
			s.Errorf("calls: %v", r.Calls)
		}
		s.Clear("3")
		s.Until("GPU 3 is back", func(r collector.Round, err error) bool {
			_, missing := value(gpus(r)[3], collector.PowerLimit, "enforced")
			return err == nil && gpus(r)[3].Down == "" && missing == nil
		})
	})
}

// A hanging call of one GPU does not affect the others and is not repeated.
func TestHang(t *testing.T) {
	inChild(t, "h100-8", nil, func(s *sampling) {
		id := gpus(s.Round())[5].ID
		s.Inject("hang", "5")
		// At first the GPU may just be slow: its previous result is reported
		// with its age, and the others are not delayed.
		s.Until("GPU 5 is late", func(r collector.Round, _ error) bool {
			return gpus(r)[5].Down == "" && gpus(r)[5].Sampled.Before(gpus(r)[4].Sampled) && len(gpus(r)[5].Readings) > 0
		})
		// The library reads the fault a moment later.
		s.UntilWithin(300*time.Millisecond, "GPU 5 hangs", func(r collector.Round, _ error) bool { return gpus(r)[5].Down != "" })
		for range 3 {
			r, err := s.Sample(2 * time.Second) // of which a busy machine needs some for the others
			if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), id) {
				s.Errorf("error %v does not name %s", err, id)
			}
			if len(gpus(r)) != 8 || gpus(r)[5].ID != id || gpus(r)[5].Down != collector.ReasonStuck {
				s.Fatalf("%d devices, the sixth is %s and down %q", len(gpus(r)), gpus(r)[5].ID, gpus(r)[5].Down)
			}
			identityOnly(s, gpus(r)[5])
			want(s, gpus(r)[4], 1, collector.RecoveryAction, "none")
		}
		s.Clear("5")
		s.Until("GPU 5 answers", func(r collector.Round, err error) bool { return err == nil && gpus(r)[5].Down == "" })
	})
}

func TestInitHangs(t *testing.T) {
	inChild(t, "h100-8", [][]string{{"hang", "all", "--call=nvmlInit"}}, func(s *sampling) {
		for range 2 {
			if r, err := s.Sample(100 * time.Millisecond); !errors.Is(err, context.DeadlineExceeded) || len(gpus(r)) != 0 {
				s.Errorf("error %v with %d devices", err, len(gpus(r)))
			}
		}
		s.Clear("all")
		s.Until("init has returned", func(r collector.Round, err error) bool { return err == nil && len(gpus(r)) == 8 })
	})
}

// A driver without the vital values answers: the GPU is up, with what there is.
func TestNoVitalValues(t *testing.T) {
	inChild(t, "t4", nil, func(s *sampling) {
		for _, c := range []string{"Temperature", "TemperatureV", "MemoryInfo", "MemoryInfo_v2", "PowerUsage", "UtilizationRates", "FieldValues"} {
			s.Inject("error", "nvmlDeviceGet"+c, "NOT_SUPPORTED", "0")
		}
		for range 2 {
			if d := gpus(s.Round())[0]; d.Down != "" {
				s.Errorf("down %q", d.Down)
			} else {
				absent(s, d, collector.TemperatureCelsius, "gpu")
				want(s, d, 16, collector.PCIeWidthMax, "device")
			}
		}
	})
}

// The slot has the lanes of its port, or, in a virtual machine, the most seen so far.
func TestNarrowSlot(t *testing.T) {
	inChild(t, "t4", nil, func(s *sampling) {
		for i, d := range gpus(s.Round()) { // a guest's GPU, and one below a port of 8 lanes
			want(s, d, 8, collector.PCIeWidth)
			want(s, d, 16, collector.PCIeWidthMax, "device")
			want(s, d, 8, collector.PCIeWidthMax, "slot")
			s.Inject("link-degraded", strconv.Itoa(i), "--width=4")
		}
		r := s.Until("both links are narrow", func(r collector.Round, _ error) bool {
			return !slices.ContainsFunc(gpus(r), func(d collector.Device) bool { v, _ := value(d, collector.PCIeWidth); return v != 4 })
		})
		for _, d := range gpus(r) {
			want(s, d, 8, collector.PCIeWidthMax, "slot")
		}
	})
}

func TestNoLibrary(t *testing.T) {
	src := New(Options{Library: "/nowhere/" + soname}, nil)
	_, err := src.Sample(t.Context())
	if !errors.Is(err, collector.ErrLibrary) || errors.Is(err, collector.ErrAbsent) || !strings.Contains(err.Error(), "/nowhere/") {
		t.Errorf("error: %v", err)
	}
	broken := t.TempDir() + "/" + soname
	if err := os.WriteFile(broken, []byte("no library"), 0o600); err != nil {
		t.Fatal(err)
	}
	bad := New(Options{Library: broken}, nil)
	if _, err := bad.Sample(t.Context()); !errors.Is(err, collector.ErrLibrary) {
		t.Errorf("a file that is no library: %v", err)
	}
	if err := errors.Join(src.Close(), bad.Close()); err != nil {
		t.Error(err)
	}
}

func TestDriverReload(t *testing.T) {
	inChild(t, "h100-8", nil, func(s *sampling) {
		s.Round()
		s.Inject("driver-reload")
		s.Until("a new process is asked for", func(r collector.Round, err error) bool {
			return errors.Is(err, collector.ErrRestart) && len(gpus(r)) == 0
		})
	})
}

func TestGoneAndReturned(t *testing.T) {
	inChild(t, "h100-8", nil, func(s *sampling) {
		id := gpus(s.Round())[2].ID
		named := func(r collector.Round) bool {
			return slices.ContainsFunc(r.Devices, func(d collector.Device) bool { return d.ID == id })
		}
		s.Inject("gone", "2")
		r := s.Until("seven GPUs", func(r collector.Round, err error) bool { return err == nil && len(gpus(r)) == 7 && !named(r) })
		for _, d := range r.Devices {
			if d.Down != "" {
				s.Errorf("%s is down: %s", d.ID, d.Down)
			}
		}
		s.Inject("return", "2")
		s.Until("eight GPUs", func(r collector.Round, err error) bool { return err == nil && len(gpus(r)) == 8 && named(r) })
	})
}

// One value or one call of one GPU does not make the driver count as replaced.
func TestOneDoubtIsNoReload(t *testing.T) {
	inChild(t, "h100-8", nil, func(s *sampling) {
		s.open(Options{SlowInterval: time.Millisecond})
		s.Round()
		s.Inject("error", "nvmlDeviceGetUtilizationRates", "UNINITIALIZED", "1")
		s.Inject("field", "230", "error:GPU_IS_LOST", "3")
		s.Inject("field", "230", "error:DRIVER_NOT_LOADED", "4")
		seen := map[string]bool{}
		r := s.Until("the faults are seen", func(r collector.Round, err error) bool {
			if errors.Is(err, collector.ErrRestart) {
				s.Fatal(err)
			}
			for _, c := range r.Calls {
				seen[c.Code] = true
			}
			return seen["uninitialized"]
		})
		for i, d := range gpus(r) {
			if d.Down != "" {
				s.Errorf("GPU %d is down: %s", i, d.Down)
			}
		}
		absent(s, gpus(r)[1], collector.UtilizationRatio, "compute")
		// All GPUs together do.
		s.Inject("error", "nvmlDeviceGetHandleByIndex", "UNINITIALIZED")
		s.Until("a new process is asked for", func(_ collector.Round, err error) bool { return errors.Is(err, collector.ErrRestart) })
	})
}

// A GPU that hangs before its identity is known has the address that is left, and
// its index.
func TestHangFromTheStart(t *testing.T) {
	inChild(t, "h100-8", [][]string{{"hang", "5"}}, func(s *sampling) {
		var err error
		r := s.UntilWithin(2*time.Second, "the others answer", func(r collector.Round, failed error) bool {
			err = failed
			return len(gpus(r)) == 8 && !slices.ContainsFunc(gpus(r), func(d collector.Device) bool { return d.KubeIDs[0] != "5" && d.Down != "" })
		})
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "nvidia5") {
			s.Fatalf("error %v", err)
		}
		if d := gpus(r)[5]; d.ID != d.PCI || d.PCI == "" || !d.Passing || d.KubeIDs[0] != "5" || d.Down != collector.ReasonStuck {
			s.Errorf("%+v", d)
		}
		s.Clear("5")
		s.Until("GPU 5 is known", func(r collector.Round, err error) bool {
			return err == nil && !gpus(r)[5].Passing && gpus(r)[5].Down == ""
		})
	})
}

// A GPU that is not given to this container is none of ours.
func TestNotPermitted(t *testing.T) {
	inChild(t, "h100-8", [][]string{{"error", "nvmlDeviceGetHandleByIndex", "NO_PERMISSION"}}, func(s *sampling) {
		r, err := s.Sample(simtest.Patience)
		if err != nil || len(r.Devices) != 0 || !slices.ContainsFunc(r.Calls, func(c collector.CallError) bool { return c.Code == "no_permission" && c.Count == 8 }) {
			s.Errorf("%d devices, error %v, calls %v", len(r.Devices), err, r.Calls)
		}
	})
}

// A GPU that hangs and then leaves the enumeration takes no other with it.
func TestHangAndGone(t *testing.T) {
	inChild(t, "h100-8", nil, func(s *sampling) {
		before := gpus(s.Round())
		s.Inject("hang", "5")
		s.UntilWithin(300*time.Millisecond, "GPU 5 hangs", func(r collector.Round, _ error) bool { return gpus(r)[5].Down != "" })
		up := func(r collector.Round, id string) bool {
			return slices.ContainsFunc(r.Devices, func(d collector.Device) bool { return d.ID == id && d.Down == "" })
		}
		// First another GPU is removed: the GPU that hangs then has its index.
		s.Inject("gone", "2")
		r := s.UntilWithin(300*time.Millisecond, "six answer", func(r collector.Round, _ error) bool {
			for i, d := range before {
				if i != 2 && i != 5 && !up(r, d.ID) {
					return false
				}
			}
			return len(gpus(r)) == 7
		})
		if i := slices.IndexFunc(r.Devices, func(d collector.Device) bool { return d.ID == before[5].ID }); i < 0 || r.Devices[i].Down != collector.ReasonStuck {
			s.Errorf("the GPU that hangs is at %d", i)
		}
		s.Inject("gone", "5")
		s.UntilWithin(300*time.Millisecond, "six are left", func(r collector.Round, _ error) bool {
			return len(gpus(r)) == 6 && up(r, before[6].ID) && up(r, before[7].ID)
		})
		s.Clear("5")
	})
}
