package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/accel-exporter/accel-exporter/internal/sim/simtest"
)

// startDCGM starts an exporter on a node where the loader finds libdcgm.
func startDCGM(t testing.TB, scenario string, simFlags []string, args ...string) *node {
	t.Helper()
	state, flags := compile(t, scenario, simFlags...)
	return startOnDCGM(t, state, append(flags, args...)...)
}

// startOnDCGM starts an exporter on the node at a state file. The loader finds
// libdcgm, and libdcgm finds the state, by environment variables. The exporter
// therefore runs in its own process.
func startOnDCGM(t testing.TB, state string, args ...string) *node {
	t.Helper()
	n, _ := startProcess(t, state, []string{"LD_LIBRARY_PATH=" + simtest.Libraries(t, "dcgm")}, append([]string{"--dcgm.watch-interval=100ms"}, args...)...)
	t.Cleanup(func() {
		if err := n.stop(); err != nil {
			t.Errorf("the exporter ended with %v", err)
		}
	})
	return n
}

const dcgmUp = `^accel_source_up\{reason="",source="dcgm"\} 1$`

// TestDCGMGolden compares the series that DCGM adds to the page of eight H100s.
// None of them is also exported from NVML.
func TestDCGMGolden(t *testing.T) {
	t.Parallel()
	n := startDCGM(t, scenario, []string{"--frozen=600"}, "--dcgm.embedded", "--dcgm.health-interval=1h", "--dcgm.fields="+fieldsFile(t))
	n.until(dcgmUp, `^accel_dcgm_field_total\{`)
	settleAs(n, "dcgm/"+scenario+".metrics", func(page string) string {
		var added strings.Builder
		for line := range strings.Lines(normalise(page)) {
			if strings.Contains(line, "dcgm") && !strings.HasPrefix(line, "# ") {
				added.WriteString(line)
			}
		}
		return added.String()
	})
}

// fieldsFile writes a counters file with three DCGM fields.
func fieldsFile(t testing.TB) string {
	t.Helper()
	return tempFile(t, "counters.csv", "DCGM_FI_DEV_GPU_TEMP, gauge, Heat\nDCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION, counter, Energy\nDCGM_FI_DEV_NAME, label, Model\n")
}

// TestDCGMFails checks that a failure of DCGM removes only the gauges of DCGM.
// The worker of NVML is not restarted, and counters are kept.
func TestDCGMFails(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := startDCGM(t, scenario, nil, "--dcgm.address=localhost:5555", "--release.directory="+dir, "--dcgm.fields="+fieldsFile(t), configured(t, "sources: {dcgm: {timeout: 1s}}"))
	const temperature, energy = `^accel_dcgm_field_value\{.*GPU_TEMP_CELSIUS`, `^accel_dcgm_field_total\{.*ENERGY`
	up := []string{dcgmUp, temperature, energy}
	page := n.until(append(up, `^accel_power_watts\{device="GPU-`)...)
	nvidia, gpu := n.worker(), device(t, page, "0")
	for _, tc := range []struct {
		name     string
		begin    func()
		during   []string
		end      func()
		restarts string
	}{
		{
			"host engine stops", func() { n.sim("inject", "dcgm-engine", "down") },
			[]string{`^accel_source_up\{reason="host_engine",source="dcgm"\} 0$`},
			func() { n.sim("inject", "dcgm-engine", "up") }, "",
		},
		{
			"calls hang", func() { n.sim("inject", "dcgm-hang") },
			[]string{`^accel_source_up\{reason="timeout",source="dcgm"\} 0$`, `^accel_source_stuck\{source="dcgm"\} 1$`},
			func() { n.sim("clear") }, "",
		},
		{
			"library crashes", func() { n.sim("inject", "dcgm-crash") }, nil,
			func() {}, `^accel_source_worker_exits_total\{how="signal_segv",source="dcgm"\} 1$`,
		},
		{
			"released", func() { writeFile(t, filepath.Join(dir, "dcgm"), "") },
			[]string{`^accel_source_released\{source="dcgm"\} 1$`, `^accel_source_up\{reason="released",source="dcgm"\} 0$`},
			func() { os.Remove(filepath.Join(dir, "dcgm")) }, "",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			n.t = t
			tc.begin()
			if tc.during != nil {
				n.until(append(tc.during, "!"+temperature, energy, `^accel_power_watts\{device="`+gpu, `^accel_source_up\{reason="",source="nvidia"\} 1$`)...)
			}
			tc.end()
			after := up
			if tc.restarts != "" {
				after = append(slices.Clip(after), tc.restarts)
			}
			n.until(after...)
			if now := n.worker(); now != nvidia {
				t.Errorf("the NVML worker changed from %d to %d", nvidia, now)
			}
		})
	}
	n.t = t
}

var placed = regexp.MustCompile(`accel_device_info\{.*device="(GPU-[^"/]*)".*pci_address="(.*?)"`)

// addresses are the GPUs of a page with their addresses.
func addresses(page string) (list string) {
	for _, m := range placed.FindAllStringSubmatch(page, -1) {
		list += m[1] + " " + m[2] + " "
	}
	return list
}

// TestDCGMAgrees: a value that DCGM alone reads of a GPU is the value that NVML has.
func TestDCGMAgrees(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"h100-8", "b200-8", "a100", "l40s", "t4"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file, err := os.ReadFile("testdata/golden/" + name + ".metrics")
			if err != nil {
				t.Fatal(err)
			}
			values := func(page string) map[string]float64 {
				all := map[string]float64{}
				for line := range strings.Lines(page) {
					series, value, _ := strings.Cut(strings.TrimSpace(line), "} ")
					if v, err := strconv.ParseFloat(value, 64); err == nil && strings.Contains(series, `device="GPU-`) {
						all[series+"}"] = v
					}
				}
				return all
			}
			nvml := values(string(file))
			n := startDCGM(t, name, []string{"--frozen=600"}, "--no-collector.nvidia", "--no-collector.kernellog", "--dcgm.embedded", "--health.catalogue="+patient(t))
			page := n.until(dcgmUp, `^accel_throttle_seconds_total\{device="GPU-`, `^accel_energy_joules_total\{device="GPU-`)
			if nvml, dcgm := addresses(string(file)), addresses(page); nvml != dcgm {
				t.Errorf("addresses are %s, not %s", dcgm, nvml)
			}
			compared := 0
			for series, v := range values(normalise(page)) {
				if want, ok := nvml[series]; ok {
					if compared++; v != want {
						t.Errorf("%s is %v, not %v", series, v, want)
					}
				}
			}
			if compared < 100 {
				t.Errorf("%d values compared", compared)
			}
		})
	}
}

// TestDCGMAlone checks the verdicts on a GPU that DCGM alone reads: of an Xid, a
// double-bit error, and a page that waits to be retired.
func TestDCGMAlone(t *testing.T) {
	t.Parallel()
	n := startDCGM(t, "t4", nil, "--no-collector.nvidia", "--no-collector.kernellog", "--dcgm.embedded")
	gpu := device(t, n.until(dcgmUp, `^accel_device_up\{.*\} 1`), "0")
	verdict := func(reason string) string {
		return `^accel_device_health_reason\{.*device="` + gpu + `".*reason="` + reason + `".*\} 1$`
	}
	n.sim("inject", "ecc", "uncorrected", "0")
	n.until(verdict("ecc_uncorrected"))
	n.sim("inject", "set", "retired.pending", "1", "0")
	n.until(verdict("retired_pages_pending"))
	n.sim("inject", "xid", "74", "0")
	n.until(verdict("xid_74"))
}
