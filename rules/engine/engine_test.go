package engine_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/accel-exporter/accel-exporter/rules/engine"
)

// TestFailure: the alerts of a rule that fails are kept and sent. Other rules are
// evaluated.
func TestFailure(t *testing.T) {
	w := newWorld(t, group(`
- alert: Hot
  expr: temp * on (device) power > 90
- alert: Wet
  expr: wet == 1
`))
	w.set(`temp{device="a"} 91`, `power{device="a"} 1`)
	w.at(0)
	w.take()
	// The join becomes ambiguous.
	w.set(`temp{device="a"} 91`, `power{device="a",n="1"} 1`, `power{device="a",n="2"} 1`, "wet 1")
	w.at(2 * time.Minute)
	if diff := cmp.Diff([]string{"firing Hot device=a", "firing Wet"}, w.take()); diff != "" {
		t.Errorf("sent (-want +got):\n%s", diff)
	}
	if r := w.rule("Hot"); r.Health != engine.HealthError || !strings.Contains(r.LastError, "many-to-many") {
		t.Errorf("health %s, %q", r.Health, r.LastError)
	}
	w.set(`temp{device="a"} 1`, `power{device="a"} 1`)
	w.at(3 * time.Minute)
	if diff := cmp.Diff([]string{"resolved Hot device=a", "resolved Wet"}, w.take()); diff != "" {
		t.Errorf("sent (-want +got):\n%s", diff)
	}
	log := w.log.String()
	if strings.Count(log, "Rule evaluation fails") != 1 || strings.Count(log, "Rule evaluation works again") != 1 {
		t.Errorf("the failure is not logged once when it begins and once when it ends:\n%s", log)
	}
}

// TestBlind: the target is down if no part of the page can be gathered. It is up if
// a part can be gathered.
func TestBlind(t *testing.T) {
	w := newWorld(t, group("- alert: Down\n  expr: up == 0\n- alert: Hot\n  expr: temp > 90\n  keep_firing_for: 5m"))
	w.set("temp 91")
	w.err = errors.New("a family is broken")
	w.at(0)
	if diff := cmp.Diff([]string{"firing Hot"}, w.alerts()); diff != "" {
		t.Errorf("a part of the page (-want +got):\n%s", diff)
	}
	w.set("")
	w.at(time.Minute)
	if diff := cmp.Diff([]string{"firing Down", "firing Hot"}, w.alerts()); diff != "" {
		t.Errorf("no page (-want +got):\n%s", diff)
	}
}

func TestSkipped(t *testing.T) {
	w := newWorld(t, `
groups:
- name: accel-cluster-drift
  rules: [{alert: Drift, expr: temp > 0}]
- name: g
  rules:
  - {alert: Far, expr: 'increase(temp[30d]) >= 0'}
  - {alert: Fixed, expr: 'temp @ 1700000000 > 0'}
  - {alert: Deep, expr: 'max_over_time(temp[8d:1h]) > 0'}
  - {alert: Near, expr: 'max_over_time(temp[7d]) > 0'}
`)
	w.set("temp 1")
	w.at(0)
	want := map[string]engine.Skip{"Drift": engine.SkipCluster, "Far": engine.SkipRange, "Fixed": engine.SkipRange, "Deep": engine.SkipRange, "Near": ""}
	for name, skip := range want {
		if got := w.rule(name).Skipped; got != skip {
			t.Errorf("%s: skipped %q, want %q", name, got, skip)
		}
	}
	if diff := cmp.Diff([]string{"firing Near"}, w.alerts()); diff != "" {
		t.Error(diff)
	}
}

// TestApply: alerts of remaining rules keep their state. Series of removed rules end.
func TestApply(t *testing.T) {
	w := newWorld(t, group("- alert: Hot\n  expr: temp > 90\n  for: 2m\n- record: old\n  expr: temp"))
	w.set("temp 91", "wet 1")
	w.at(0)
	w.Apply(parse(t, group("- alert: Wet\n  expr: wet == 1\n- alert: Hot\n  expr: temp > 80\n  for: 2m")))
	w.at(time.Minute)
	w.at(2 * time.Minute)
	if diff := cmp.Diff([]string{"firing Hot", "firing Wet"}, w.alerts()); diff != "" {
		t.Errorf("Hot is pending again, or Wet reads no samples (-want +got):\n%s", diff)
	}
	if got := w.query("old"); got != nil {
		t.Errorf("old does not end: %v", got)
	}
	w.Apply(nil)
	w.at(3 * time.Minute)
	if got := w.alerts(); got != nil {
		t.Errorf("without rules: %v", got)
	}
}
