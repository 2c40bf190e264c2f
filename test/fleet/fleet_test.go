package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestRules: over nodes of which one has a GPU that two pods share, GPUs that
// are cut up, pods with several devices, and faults, every rule that
// the table prices can be evaluated, and the faults are found.
func TestRules(t *testing.T) {
	t.Chdir("..") // where make runs it
	paths, err := filepath.Glob("../rules/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	groups, err := loadGroups(paths, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	gpus, _ := classOf("gpu", "")
	page, err := loadPage(gpus.page)
	if err != nil {
		t.Fatal(err)
	}
	f, err := newFleet(gpus, page, 3, windows(groups), 95*time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer f.close()
	costs, err := f.evaluate(t.Context(), groups, 1)
	if err != nil {
		t.Fatal(err)
	}
	series := map[string]int{}
	for _, c := range costs {
		series[c.rule] = c.series
	}
	for name, want := range map[string]int{
		"device:accel_verdict:active":     1,
		"device_pod:accel_verdict:holder": 1,
		"GpuRowRemapPending":              1,
		"AcceleratorDrift":                1,
		"GpuXidFatal":                     0,
		"AllocationIdle":                  2,
		// Of pods with devices: two jobs, one that shares, and the pods
		// of the node that gives its devices away one by one.
		"namespace_pod:accel_container_restarts:increase1h": 13,
	} {
		if got, ok := series[name]; !ok || got != want {
			t.Errorf("%s: %d series, want %d", name, got, want)
		}
	}
	var out strings.Builder
	if err := report(&out, costs, f); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "24 GPUs") {
		t.Errorf("the report does not count the GPUs there are:\n%s", out.String())
	}
}

// TestCards: over nodes with FPGA cards every rule can be evaluated, and those
// on FPGAs have something to read.
func TestCards(t *testing.T) {
	t.Chdir("..") // where make runs it
	paths, err := filepath.Glob("../rules/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	groups, err := loadGroups(paths, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	cards, _ := classOf("fpga", "")
	page, err := loadPage(cards.page)
	if err != nil {
		t.Fatal(err)
	}
	f, err := newFleet(cards, page, 3, windows(groups), 95*time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer f.close()
	costs, err := f.evaluate(t.Context(), groups, 1)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := report(&out, costs, f); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "12 cards on 3 nodes") {
		t.Errorf("the report does not count the cards there are:\n%s", out.String())
	}
	for _, family := range []string{"accel_fpga_bitstream_info", "accel_temperature_limit_celsius", "accel_drift"} {
		if slices.Contains(f.absent, family) {
			t.Errorf("the fleet has no %s", family)
		}
	}
}
