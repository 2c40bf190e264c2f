//go:build linux && cgo

package nvidia

import (
	"fmt"
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

// Every row of the metric table with NVML as origin has a value on some board,
// with as many labels as the row and one series per label set.
func TestEveryRow(t *testing.T) {
	filled := map[string]bool{}
	for _, scenario := range []string{
		"h100-8", "b200-8", "a100", "t4", "l40s", "vgpu", "one-lost", "old-driver", "h100-mig-16x7", "h100-unprivileged", "gb200-4",
	} {
		t.Run(scenario, func(t *testing.T) {
			faults := map[string][][]string{
				"b200-8": {{"field", "258", "97", "0"}, {"set", "fabric.health_mask", "0x11aa", "0"}},
				"gb200-4": {
					{"driver-reload", "--driver=615.36.04"},
					{"set", "link.0.state", "3", "0"},
					{"set", "bank_remap.active", "1", "0"},
					{"set", "bank_remap.pending", "1", "0"},
					{"set", "bank_remap.groups.none", "1", "0"},
				},
				"h100-8": {{"mig", "0", "3g.40gb:1c+2c"}},
				"t4":     {{"set", "fan.count", "2", "0"}, {"set", "fan.speed", "43", "0"}, {"set", "fan.rpm", "1700", "0"}},
			}
			out := inChild(t, scenario, faults[scenario], func(s *sampling) {
				for range 3 {
					r, _ := s.Sample(simtest.Patience)
					checkRound(s, r)
					time.Sleep(gpmWindow)
				}
			})
			for line := range strings.Lines(out) {
				if _, name, ok := strings.Cut(strings.TrimSpace(line), "filled: "); ok {
					filled[name] = true
				}
			}
		})
	}
	if simtest.Child() != "" {
		return
	}
	for _, m := range collector.Table() {
		nvml := strings.HasPrefix(strings.Join(m.From, " "), "NVML") && !strings.Contains(m.From[0], "nvmlEventSetWait") && m != collector.NativeCallErrors
		if nvml != filled[m.Name] {
			t.Errorf("%s: from %q, filled %v", m.Name, m.From, filled[m.Name])
		}
	}
}

func checkRound(s *sampling, r collector.Round) {
	for _, d := range r.Devices {
		seen := map[string]bool{}
		for _, x := range d.Readings {
			series := fmt.Sprint(x.Metric.Name, x.Labels)
			if seen[series] {
				s.Errorf("%s: %s twice", d.ID, series)
			}
			seen[series] = true
			if len(x.Labels) != len(x.Metric.Labels) {
				s.Errorf("%s: %s has other labels than %v", d.ID, series, x.Metric.Labels)
			}
			s.Log("filled: " + x.Metric.Name)
		}
		for _, x := range d.Rejects {
			s.Errorf("%s: %s rejected: %s", d.ID, x.Metric.Name, x.Reason)
		}
	}
	for _, x := range r.Node {
		s.Log("filled: " + x.Metric.Name)
	}
}

// A GPU of which only the index is known is at the address that the driver has
// and no other GPU is at, if that is the only way to place them.
func TestLocate(t *testing.T) {
	at := func(id, pci string) collector.Device { return collector.Device{ID: id, PCI: pci, Class: collector.GPU} }
	const a, b, c = "0000:1b:00.0", "0000:2b:00.0", "0000:3b:00.0"
	for name, x := range map[string]struct {
		folders []string // of the driver; none: procfs is hidden
		bound   []string // to the driver
		devices []collector.Device
		want    string
	}{
		"the second of three": {[]string{a, "0000:2B:00.0", c}, nil, []collector.Device{at("GPU-a", a), place(1), at("GPU-c", c)}, "GPU-a " + b + " GPU-c"},
		"two":                 {[]string{a, b, c}, nil, []collector.Device{place(0), at("GPU-b", b), place(2)}, a + " GPU-b " + c},
		"procfs is hidden":    {nil, []string{a, b}, []collector.Device{at("GPU-a", a), place(1)}, "GPU-a " + b},
		"one is of another container": {
			[]string{a, b, c}, nil, []collector.Device{at("GPU-a", a), place(1)}, "GPU-a nvidia1",
		},
		"one has no address": {[]string{a, b}, nil, []collector.Device{at("GPU-a", ""), place(1)}, "GPU-a nvidia1"},
		"nothing is known":   {nil, nil, []collector.Device{place(0)}, "nvidia0"},
	} {
		t.Run(name, func(t *testing.T) {
			sys, procfs := t.TempDir(), t.TempDir()
			for _, address := range x.folders {
				mkdir(t, filepath.Join(procfs, "driver/nvidia/gpus", address))
			}
			for _, address := range x.bound {
				mkdir(t, filepath.Join(sys, "bus/pci/drivers/nvidia", address))
			}
			locate(x.devices, sys, procfs)
			var got []string
			for i, d := range x.devices {
				got = append(got, d.ID)
				if d.Passing && (d.PCI != "" && d.PCI != d.ID || !slices.Equal(d.Readings[0].Labels, []string{"gpu", "nvidia", "", "", strconv.Itoa(i), d.PCI, "", "", "", ""})) {
					t.Errorf("%+v", d)
				}
			}
			if got := strings.Join(got, " "); got != x.want {
				t.Errorf("%s, want %s", got, x.want)
			}
		})
	}
}

func mkdir(t *testing.T, dir string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
}
