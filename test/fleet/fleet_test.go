package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// measured prices every rule once, on a fleet of three nodes, and returns the fleet,
// how many series each rule returns, and the report.
func measured(t *testing.T, kind string) (*fleet, map[string]int, string) {
	t.Helper()
	t.Chdir("..") // where make runs it
	paths, err := filepath.Glob("../rules/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	groups, err := loadGroups(paths, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	c, _ := classOf(kind, "")
	page, err := loadPage(c.page)
	if err != nil {
		t.Fatal(err)
	}
	f, err := newFleet(c, page, 3, windows(groups, 95*time.Minute), 95*time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.close)
	costs, err := f.evaluate(t.Context(), groups, 1)
	if err != nil {
		t.Fatal(err)
	}
	series := map[string]int{}
	for _, c := range costs {
		series[c.rule] = c.series
	}
	var out strings.Builder
	if err := report(&out, costs, f); err != nil {
		t.Fatal(err)
	}
	return f, series, out.String()
}

// TestRules: over nodes of which one has a GPU that two pods share, GPUs that
// are cut up, pods with several devices, and faults, every rule that
// the table prices can be evaluated, and the faults are found.
func TestRules(t *testing.T) {
	_, series, page := measured(t, "gpu")
	for name, want := range map[string]int{
		"device:accel_incident:held": 1,
		"AcceleratorFailed":          1,
		"AcceleratorResetDue":        1,
		"AcceleratorDegraded":        0,
		"AcceleratorDrift":           1,
		"AllocationIdle":             2,
		// Of pods with devices: two jobs, one that shares, and the pods
		// of the node that gives its devices away one by one.
		"namespace_pod:accel_workload:info": 13,
	} {
		if got, ok := series[name]; !ok || got != want {
			t.Errorf("%s: %d series, want %d", name, got, want)
		}
	}
	if !strings.Contains(page, "24 GPUs") {
		t.Errorf("the report does not count the GPUs there are:\n%s", page)
	}
}

// TestCards: over nodes with FPGA cards every rule can be evaluated, and those
// on FPGAs have something to read.
func TestCards(t *testing.T) {
	f, _, page := measured(t, "fpga")
	if !strings.Contains(page, "12 cards on 3 nodes") {
		t.Errorf("the report does not count the cards there are:\n%s", page)
	}
	for _, family := range []string{"accel_fpga_bitstream_info", "accel_temperature_limit_celsius", "accel_drift"} {
		if slices.Contains(f.absent, family) {
			t.Errorf("the fleet has no %s", family)
		}
	}
}
