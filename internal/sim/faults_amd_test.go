package sim

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/accel-exporter/accel-exporter/collector/sysfs"
	"github.com/accel-exporter/accel-exporter/internal/sim/gpumetrics"
)

// A fault of an AMD GPU is in the files and the kernel log that the driver of that
// GPU has; a GPU that cannot have it refuses.
func TestAMDFaults(t *testing.T) {
	type node struct {
		state string
		sys   sysfs.FS
	}
	nodes := map[string]*node{}
	whole := t
	for _, tc := range []struct {
		scenario, words string
		files           map[string]string
		log             []string // without the address of the GPU
	}{
		{scenario: "mi300x-8", words: "amd-ecc uncorrected 1 --block=gfx --count=2 --poison=consumed", files: map[string]string{"ras/aca_gfx": "ue: 2\nce: 0\nde: 0"}, log: []string{
			"amdgpu ADDRESS: {1}socket: 0, die: 0, 2 new uncorrectable hardware errors detected in gfx block",
			"amdgpu ADDRESS: {1}socket: 0, die: 0, 2 uncorrectable hardware errors detected in total in gfx block",
			"amdgpu ADDRESS: amdgpu: GPU reset for gfx RAS poison consumption is issued!",
		}},
		{scenario: "mi300x-cpx", words: "amd-ecc deferred 1 --no-log", files: map[string]string{"ras/aca_umc": "ue: 0\nce: 0\nde: 1"}},
		{scenario: "mi210", words: "amd-ecc corrected 1", files: map[string]string{"ras/umc_err_count": "ue: 0\nce: 2"}, log: []string{"amdgpu ADDRESS: amdgpu: 1 correctable hardware errors detected in umc block"}},

		{scenario: "radeon", words: "amd-hang 0 --ends=soft", log: []string{"amdgpu ADDRESS: amdgpu: ring comp_1.0.0 timeout, but soft recovered"}},
		{scenario: "mi300x-8", words: "amd-hang 1 --ends=queue", log: []string{
			"amdgpu ADDRESS: amdgpu: ring comp_1.0.0 timeout, signaled seq=48, emitted seq=50",
			"amdgpu ADDRESS: amdgpu: Process information: process python3 pid 4242 thread python3 pid 4242",
			"amdgpu ADDRESS: amdgpu: Starting comp_1.0.0 ring reset", "amdgpu ADDRESS: amdgpu: Ring comp_1.0.0 reset succeeded",
		}},
		{scenario: "mi210", words: "amd-hang 1 --ends=failed", files: map[string]string{"gpu_metrics": "", "mem_info_vram_used": "51539607552"}, log: []string{
			"[drm:amdgpu_job_timedout [amdgpu]] *ERROR* ring comp_1.0.0 timeout, signaled seq=48, emitted seq=50",
			"[drm:amdgpu_job_timedout [amdgpu]] *ERROR* Process information: process python3 pid 4242 thread python3 pid 4242",
			"amdgpu ADDRESS: amdgpu: GPU reset begin!", "amdgpu ADDRESS: amdgpu: GPU reset(1) failed", "amdgpu ADDRESS: amdgpu: GPU reset end with ret = -110",
		}},
		{scenario: "mi300x-8", words: "amd-reset 1", files: map[string]string{"energy_accumulator": "0", "temperature_hotspot": "52"}, log: []string{
			"amdgpu ADDRESS: amdgpu: GPU reset begin!", "amdgpu ADDRESS: amdgpu: GPU reset succeeded, trying to resume", "amdgpu ADDRESS: amdgpu: GPU reset(1) succeeded!",
		}},

		{scenario: "mi300x-8", words: "amd-throttle power 1 --for=3s", files: map[string]string{"ppt_residency_acc": "15000"}, log: []string{"amdgpu ADDRESS: amdgpu: WARN: GPU is throttled, expect performance decrease. PPT."}},
		{scenario: "mi210", words: "amd-throttle thermal 1", files: map[string]string{"indep_throttle_status": "0"}, log: []string{"amdgpu ADDRESS: amdgpu: WARN: GPU thermal throttling temperature reached, expect performance decrease. Hotspot."}},
		{scenario: "radeon", words: "amd-throttle thermal 0", files: map[string]string{"indep_throttle_status": "0"}},

		{scenario: "mi300x-8", words: "amd-xgmi 3 down 1", files: map[string]string{"xgmi_link_status 3": "0", "xgmi_link_status 2": "1"}},

		{scenario: "radeon", words: "amd-sleep 0", files: map[string]string{"power/runtime_status": "suspended", "power_state": "D3cold"}},

		{scenario: "mi210", words: "amd-retire 1 1", files: map[string]string{"ras/gpu_vram_bad_pages": "0x0000001f : 0x00001000 : R\n0x0000a310 : 0x00001000 : R\n0x00100002 : 0x00001000 : R"}},
		{scenario: "mi300x-8", words: "amd-retire 240 1", log: []string{"amdgpu ADDRESS: amdgpu: RAS records:240 exceeds 90% of threshold:256"}},
	} {
		t.Run(tc.scenario+" "+tc.words, func(t *testing.T) {
			if nodes[tc.scenario] == nil {
				state, sys := installed(whole, tc.scenario)
				nodes[tc.scenario] = &node{state, sys}
			}
			state, sys := nodes[tc.scenario].state, nodes[tc.scenario].sys
			strike(t, state, "clear all")
			before := len(kernelLog(t, state))
			strike(t, state, tc.words)
			at := amdAddress(t, state)
			for name, want := range tc.files {
				if got := amdFile(sys, at, name); got != want {
					t.Errorf("%s is %q, want %q", name, got, want)
				}
			}
			var log []string
			for _, line := range kernelLog(t, state)[before:] {
				log = append(log, strings.ReplaceAll(line, at, "ADDRESS"))
			}
			if diff := cmp.Diff(tc.log, log); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// amdAddress returns the address of the second GPU of a node, or of its only one.
func amdAddress(t *testing.T, state string) string {
	s := stateOf(t, state)
	if rec := s.Get("card.1"); rec != "" {
		return attr(rec, "at")
	}
	return attr(s.Get("card.0"), "at")
}

// amdFile returns the content of a file, "" where it cannot be read, or the value
// of a field of gpu_metrics: NAME, or NAME and an instance.
func amdFile(sys sysfs.FS, at, name string) string {
	dir := "bus/pci/devices/" + at + "/"
	b, _ := sys.ReadBytes(dir+"gpu_metrics", sysfs.Page)
	field, instance, _ := strings.Cut(name, " ")
	i, _ := strconv.Atoi(instance)
	if v, err := gpumetrics.Get(b, field, i); err == nil {
		return strconv.FormatUint(v, 10)
	}
	text, _ := sys.Read(dir + name)
	return text
}

// Clear ends every fault of an AMD GPU, and the driver is loaded again, which ends
// what lasts until then.
func TestClearAMD(t *testing.T) {
	for _, what := range []string{"all", "1"} {
		state, sys := installed(t, "mi300x-8")
		at := amdAddress(t, state)
		for _, words := range []string{"amd-ecc uncorrected 1", "amd-hang 1 --ends=failed", "amd-retire 300 1", "bus-loss 1"} {
			strike(t, state, words)
		}
		if sys.Exists("bus/pci/drivers/amdgpu/" + at) {
			t.Error("the GPU is still there")
		}
		strike(t, state, "clear "+what)
		if v := amdFile(sys, at, "temperature_hotspot"); v != "52" || amdFile(sys, at, "ras/aca_umc") != "ue: 0\nce: 0\nde: 0" {
			t.Errorf("clear %s: %s °C, %s", what, v, amdFile(sys, at, "ras/aca_umc"))
		}
		if !slices.Contains(kernelLog(t, state), "[drm] Initialized amdgpu 3.64.0 for "+at+" on minor 1") {
			t.Errorf("clear %s: the driver was not loaded", what)
		}
	}
}
