package incidents_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/accel-exporter/accel-exporter/test/incidents"
)

const fixtures = "../../fixtures"

// The corpus has the size that was asked for, and each of its files names
// nodes, faults, devices and alerts that there are.
func TestCorpus(t *testing.T) {
	all, err := incidents.Load(filepath.Join(fixtures, "incidents"))
	if err != nil {
		t.Fatal(err)
	}
	alerts, err := incidents.Alerts("../../rules")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]incidents.Alert{
		"AcceleratorFailed": {Group: "accel-incidents", Severity: "critical"},
		"AcceleratorsHot":   {Group: "accel-conditions", For: 2 * time.Minute, Severity: "warning"},
	} {
		if got := alerts[name]; got != want {
			t.Errorf("%s is %+v, want %+v", name, got, want)
		}
	}
	healthy := 0
	for _, i := range all {
		if i.Healthy() {
			healthy++
		}
		if err := i.Rehearse(fixtures); err != nil {
			t.Error(err)
		}
		var named []string
		for _, e := range i.Expect {
			named = append(named, e.Alert)
		}
		for _, p := range append(i.Never, i.Allow...) {
			named = append(named, p.Alert)
		}
		for _, name := range named {
			if _, ok := alerts[name]; !ok {
				t.Errorf("%s: no alert is named %s", i.Name, name)
			}
		}
	}
	if n := len(all) - healthy; n < 40 {
		t.Errorf("%d incidents; want at least 40", n)
	}
	if healthy < 10 {
		t.Errorf("%d healthy days; want at least 10", healthy)
	}
}
