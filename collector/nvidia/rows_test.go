//go:build linux && cgo

package nvidia

import (
	"fmt"
	"os"
	"path/filepath"
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
				"h100-8": {{"mig", "0", "3g.40gb:1c+2c"}},
				"t4":     {{"set", "fan.count", "2", "0"}, {"set", "fan.speed", "43", "0"}, {"set", "fan.rpm", "1700", "0"}},
			}
			out := inChild(t, scenario, faults[scenario], func(s *sampling) {
				for range 3 {
					r, _ := s.sample(30 * time.Second)
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

func TestStranger(t *testing.T) {
	root := t.TempDir()
	for address, information := range map[string]string{
		"0000:1B:00.0": "Model: \t NVIDIA H100 80GB HBM3\nGPU UUID: \t GPU-11111111-2222-3333-4444-555555555555\nBus Location: \t 0000:1b:00.0\n",
		"0000:2B:00.0": "Model: \t NVIDIA H100 80GB HBM3\nGPU UUID: \t GPU-????????-????-????-????-????????????\n",
	} {
		if err := os.Mkdir(filepath.Join(root, address), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, address, "information"), []byte(information), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for i, want := range []string{"GPU-11111111-2222-3333-4444-555555555555", "0000:2b:00.0", "nvidia2"} {
		if d := unopened(root, i); d.ID != want {
			t.Errorf("GPU %d is %s, want %s", i, d.ID, want)
		}
	}
}
