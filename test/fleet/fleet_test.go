package main

import (
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Over nodes of which one has a GPU that two pods share, GPUs that are cut up, pods
// with several devices, and faults, every rule that the table prices can be evaluated,
// and the faults are found.
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
	f, err := newFleet(golden, 3, windows(groups, 95*time.Minute), 95*time.Minute)
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
		"device:accel_incident:held": 1,
		"AcceleratorFailed":          1,
		"AcceleratorResetDue":        1,
		"AcceleratorDegraded":        0,
		"AcceleratorDrift":           1,
		"AllocationIdle":             2,
		// Of pods with devices: two jobs, a pod that shares, and the pods of
		// the node that gives its devices away one by one.
		"namespace_pod:accel_workload:info": 13,
	} {
		if got, ok := series[name]; !ok || got != want {
			t.Errorf("%s: %d series, want %d", name, got, want)
		}
	}
	var out strings.Builder
	if err := report(&out, costs, f); err != nil || !strings.Contains(out.String(), "24 GPUs") {
		t.Errorf("the report does not count the GPUs there are: %v\n%s", err, out.String())
	}
}
