//go:build linux && cgo

package nvidia

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
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

func TestHealthy(t *testing.T) {
	inChild(t, "h100-8", nil, func(s *sampling) {
		r := s.Round()
		if len(gpus(r)) != 8 {
			s.Fatalf("%d devices, want 8", len(gpus(r)))
		}
		for _, d := range gpus(r) {
			if d.Down != "" || d.Sampled.IsZero() || d.Parent != "" || len(d.Rejects) != 0 {
				s.Errorf("%s: down %q, sampled %v, parent %q, rejects %v", d.ID, d.Down, d.Sampled, d.Parent, d.Rejects)
			}
		}
		d := gpus(r)[0]
		want(s, d, 1, collector.DeviceInfo)
		want(s, d, 1, collector.RecoveryAction, "none")
		want(s, d, 0, collector.RecoveryAction, "reset")
		want(s, d, 16, collector.PCIeWidth)
		want(s, d, 700, collector.PowerLimit, "enforced")
		want(s, d, 1.98e9, collector.ClockMax, "sm")
		want(s, d, 1, collector.NVLinkUp, "17")
		absent(s, d, collector.NVLinkUp, "18")
		absent(s, d, collector.NVLinkErrors, "0", "symbol")
		absent(s, d, collector.ECCErrors, "corrected", "all")
		absent(s, d, collector.OccupancyRatio)
		for _, id := range []string{d.ID, "nvidia0", "gpu-0", "0"} {
			if !slices.Contains(d.KubeIDs, id) {
				s.Errorf("KubeIDs %v lack %s", d.KubeIDs, id)
			}
		}
		if len(r.Node) != 2 || r.Node[0].Metric != collector.DriverInfo || r.Node[1].Metric != collector.ConfidentialCompute {
			s.Errorf("node readings: %+v", r.Node)
		}
		s.Until("the means between two samples", func(r collector.Round, _ error) bool {
			v, err := value(gpus(r)[7], collector.OccupancyRatio)
			return err == nil && v >= 0 && v <= 1
		})
	})
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

func TestResetRequired(t *testing.T) {
	inChild(t, "h100-8", [][]string{{"reset-required", "2"}}, func(s *sampling) {
		r, err := s.Sample(10 * time.Second)
		if err == nil || len(gpus(r)) != 8 || gpus(r)[2].Down != collector.ReasonResetRequired {
			s.Fatalf("%d devices, error %v", len(gpus(r)), err)
		}
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
			r, err := s.Sample(300 * time.Millisecond)
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
	inChild(t, "h100-8", [][]string{{"init-hang"}}, func(s *sampling) {
		for range 2 {
			if r, err := s.Sample(100 * time.Millisecond); !errors.Is(err, context.DeadlineExceeded) || len(gpus(r)) != 0 {
				s.Errorf("error %v with %d devices", err, len(gpus(r)))
			}
		}
		s.Clear("all")
		s.Until("init has returned", func(r collector.Round, err error) bool { return err == nil && len(gpus(r)) == 8 })
	})
}

// A library without the newer functions costs readings, not the process.
func TestOldDriver(t *testing.T) {
	inChild(t, "old-driver", nil, func(s *sampling) {
		r := s.Round()
		d := gpus(r)[0]
		for _, name := range []string{"nvmlDeviceGetMarginTemperature", "nvmlGpmQueryDeviceSupport"} {
			if !slices.Contains(r.Calls, collector.CallError{Call: name, Code: "function_not_found", Count: 1}) {
				s.Errorf("%s is not counted: %v", name, r.Calls)
			}
		}
		if _, err := value(d, collector.ThrottleActive, "hw_slowdown"); err != nil {
			s.Errorf("no throttle reasons by the older name: %v", err)
		}
		absent(s, d, collector.RecoveryAction, "none")
		absent(s, d, collector.ActivityRatio, "sm")
		s.Until("the older thermal counter", func(r collector.Round, _ error) bool {
			_, err := value(gpus(r)[0], collector.ThrottleSeconds, "thermal")
			return err == nil
		})
	})
}

// Nothing that is no measurement becomes a reading.
func TestGarbage(t *testing.T) {
	inChild(t, "garbage", nil, func(s *sampling) {
		r, _ := s.Sample(10 * time.Second)
		for round := range 3 {
			if len(gpus(r)) != 4 {
				s.Fatalf("%d devices", len(gpus(r)))
			}
			for _, d := range r.Devices {
				for _, x := range d.Readings {
					if !x.Metric.Range.Contains(x.Value) {
						s.Errorf("%s%v %v", x.Metric.Name, x.Labels, x.Value)
					}
				}
			}
			for i := range 3 {
				if round == 0 && len(r.Devices[i].Rejects) == 0 {
					s.Errorf("nothing of GPU %d was rejected", i)
				}
			}
			for i, down := range []string{"", "", "", collector.ReasonError} {
				if d := gpus(r)[i]; d.Down != down {
					s.Errorf("GPU %d is down %q, want %q", i, d.Down, down)
				}
			}
			d := gpus(r)[0]
			absent(s, d, collector.TemperatureCelsius, "gpu")
			absent(s, d, collector.MemoryUsed)
			absent(s, d, collector.EnergyJoules)
			absent(s, d, collector.RecoveryAction)
			absent(s, d, collector.PCIeWidth)
			absent(s, d, collector.FabricState)
			r, _ = s.Sample(10 * time.Second)
		}
	})
}

// A value that is newer than this program is other; the rest of the state set
// stays.
func TestNewerValues(t *testing.T) {
	inChild(t, "b200-8", [][]string{{"set", "recovery_action", "7", "0"}, {"set", "compute_mode", "9", "0"}, {"set", "architecture", "99", "0"}}, func(s *sampling) {
		d := gpus(s.Round())[0]
		want(s, d, 1, collector.RecoveryAction, "other")
		want(s, d, 0, collector.RecoveryAction, "none")
		want(s, d, 1, collector.ComputeMode, "other")
		want(s, d, 0, collector.ComputeMode, "default")
		want(s, d, 1, collector.DeviceInfo, "gpu", "nvidia", "NVIDIA B200", "other")
		want(s, d, 0, collector.NVLinkBER, "0", "effective")
		if len(d.Rejects) > 0 {
			s.Errorf("rejects: %v", d.Rejects)
		}
	})
}

// R545 declares the memory temperature as a double and fills in the integer.
func TestIntegerDeclaredAsDouble(t *testing.T) {
	inChild(t, "h100-8", [][]string{{"driver-reload", "--driver=545.29.06"}, {"set", "temperature.memory", "61", "0"}}, func(s *sampling) {
		want(s, gpus(s.Round())[0], 61, collector.TemperatureCelsius, "memory")
	})
}

func TestMismatch(t *testing.T) {
	inChild(t, "driver-mismatch", nil, func(s *sampling) {
		for range 2 {
			if _, err := s.Sample(time.Second); !errors.Is(err, collector.ErrMismatch) || !strings.Contains(err.Error(), "library") {
				s.Errorf("error: %v", err)
			}
		}
	})
}

func TestNoDriver(t *testing.T) {
	inChild(t, "no-driver", nil, func(s *sampling) {
		r, err := s.Sample(time.Second)
		if !errors.Is(err, collector.ErrDriver) || len(r.Calls) == 0 {
			s.Errorf("error: %v, calls %v", err, r.Calls)
		}
	})
}

func TestNoGPU(t *testing.T) {
	inChild(t, "no-gpu", nil, func(s *sampling) {
		if r := s.Round(); len(gpus(r)) != 0 || len(r.Node) == 0 {
			s.Errorf("%+v", r)
		}
	})
}

func TestNoLibrary(t *testing.T) {
	src := New(Options{Library: "/nowhere/" + soname}, nil)
	_, err := src.Sample(t.Context())
	if !errors.Is(err, collector.ErrDriver) || errors.Is(err, collector.ErrAbsent) || !strings.Contains(err.Error(), "/nowhere/") {
		t.Errorf("error: %v", err)
	}
	broken := t.TempDir() + "/" + soname
	if err := os.WriteFile(broken, []byte("no library"), 0o600); err != nil {
		t.Fatal(err)
	}
	bad := New(Options{Library: broken}, nil)
	if _, err := bad.Sample(t.Context()); !errors.Is(err, collector.ErrDriver) {
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
		r, err := s.Sample(2 * time.Second)
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "nvidia5") || len(gpus(r)) != 8 {
			s.Fatalf("%d devices, error %v", len(gpus(r)), err)
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
		r, err := s.Sample(10 * time.Second)
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
		// First another GPU is removed: the one that hangs then has its index.
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

// status, summary and partition of the fabric are read. A value that the program
// does not know is other, and the rest of the family stays.
func TestFabric(t *testing.T) {
	set := func(gpu, key, value string) []string { return []string{"set", key, value, gpu} }
	inChild(t, "b200-8", [][]string{
		{"fabric", "completed", "1", "--status=NOT_FOUND"},
		set("2", "fabric.health_summary", "2"), set("3", "fabric.health_summary", "3"),
		set("4", "fabric.health_mask", "0x20aa"), set("5", "fabric.state", "7"), set("5", "fabric.health_summary", "9"), set("6", "fabric.status", "77"),
		set("7", "fabric.cluster_uuid", "00000001-0000-0000-0000-000000000001"), set("7", "fabric.health_mask", "0x11aa"),
	}, func(s *sampling) {
		g := gpus(s.Round())
		want(s, g[0], 1, collector.FabricState, "completed")
		want(s, g[0], 1, collector.FabricStatus, "success")
		want(s, g[0], 1, collector.FabricHealth, "healthy")
		absent(s, g[0], collector.FabricHealth, "other")
		absent(s, g[0], collector.FabricInfo) // its cluster UUID is all zeros
		want(s, g[1], 0, collector.FabricStatus, "success")
		want(s, g[1], 1, collector.FabricStatus, "not_found")
		want(s, g[2], 1, collector.FabricHealth, "unhealthy")
		want(s, g[3], 1, collector.FabricHealth, "limited_capacity")
		want(s, g[4], 0, collector.FabricPartition)
		want(s, g[5], 1, collector.FabricState, "other")
		want(s, g[5], 0, collector.FabricState, "completed")
		want(s, g[5], 1, collector.FabricHealth, "other")
		absent(s, g[5], collector.FabricStatus, "success")
		want(s, g[6], 1, collector.FabricStatus, "other")
		want(s, g[7], 1, collector.FabricInfo, "00000001-0000-0000-0000-000000000001", "0")
		want(s, g[7], 1, collector.FabricPartition)
	})
}

// A direct NVLink to a GPU in MIG mode reads as down and is left out. Links to
// switches are not affected.
func TestLinksToMIG(t *testing.T) {
	for scenario, direct := range map[string]bool{"a100": true, "h100-8": false} {
		t.Run(scenario, func(t *testing.T) {
			inChild(t, scenario, [][]string{{"mig", "2", "1g.10gb"}, {"nvlink", "5", "down", "0"}}, func(s *sampling) {
				g := gpus(s.Round())
				want(s, g[0], 1, collector.NVLinkUp, "0")
				absent(s, g[2], collector.NVLinkUp, "0") // NVML does not support it
				if !direct {
					want(s, g[0], 0, collector.NVLinkUp, "5")
					return
				}
				for _, link := range []string{"4", "7"} {
					absent(s, g[0], collector.NVLinkUp, link)
				}
				want(s, g[0], 1, collector.NVLinkUp, "8")
			})
		})
	}
}

// NVLink values that are not of one link are one series per GPU, and a value that
// the program does not know is other.
func TestLinkDetails(t *testing.T) {
	inChild(t, "b200-8", [][]string{
		{"nvlink", "3", "errors", "0", "--counter=field.215", "--count=4"},
		{"nvlink", "1", "errors", "0", "--counter=field.237", "--count=5"},
		{"nvlink", "2", "errors", "0", "--counter=field.237", "--count=6"},
		{"nvlink", "0", "down", "1"},
		{"field", "166", "77", "2"},
		{"nvlink", "9", "errors", "0", "--counter=field.292", "--count=263"}, // 1e-7
	}, func(s *sampling) {
		g := gpus(s.Round())
		want(s, g[0], 4, collector.NVLinkErrors, "3", "recovery")
		want(s, g[0], 1e-9, collector.NVLinkBER, "17", "raw")
		want(s, g[0], 1e-9, collector.NVLinkLaneBER, "0")
		want(s, g[0], 1e-7, collector.NVLinkLaneBER, "1")
		if v, err := value(g[0], collector.NVLinkFEC, "2"); err != nil || v < 11 {
			s.Errorf("bin 2: %v, %v", v, err)
		}
		want(s, g[0], 18*53.125e9, collector.NVLinkSpeed)
		want(s, g[1], 17*53.125e9, collector.NVLinkSpeed)
		want(s, g[1], 1, collector.NVLinkInfo, "5.0")
		want(s, g[2], 1, collector.NVLinkInfo, "other")
		absent(s, g[0], collector.C2CLinks, "active")
	})
}

func TestC2C(t *testing.T) {
	inChild(t, "gb200-4", [][]string{{"field", "171", "5", "1"}, {"field", "234", "1", "1"}, {"field", "231", "error:UNKNOWN", "1"}}, func(s *sampling) {
		r, _ := s.Sample(30 * time.Second)
		g := gpus(r)
		want(s, g[0], 10, collector.C2CLinks, "active")
		want(s, g[0], 0, collector.C2CLinks, "inactive")
		absent(s, g[0], collector.C2CLinks, "other")
		want(s, g[0], 10, collector.C2CPowerLinks, "full_power")
		want(s, g[0], 10*44.712e9, collector.C2CSpeed)
		want(s, g[0], 10, collector.C2CErrors, "replay")
		want(s, g[0], 1, collector.FabricInfo, "00000001-0000-0000-0000-000000000001", "2")
		want(s, g[1], 10, collector.C2CLinks, "other")
		want(s, g[1], 10, collector.C2CPowerLinks, "low_power")
		absent(s, g[1], collector.C2CErrors, "crc")
		want(s, g[1], 10, collector.C2CErrors, "replay")
	})
}
