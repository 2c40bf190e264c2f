package engine_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/accel-exporter/accel-exporter/rules/engine"
)

// step is one evaluation: its page and the expected alerts.
type step struct {
	at   time.Duration
	page string // "" keeps the previous page, "-" removes its series
	want []string
}

// TestAlerts evaluates the rules of each test case on a sequence of pages. test/rules
// compares all states and series with those of Prometheus.
func TestAlerts(t *testing.T) {
	const minute = time.Minute
	for name, c := range map[string]struct {
		rules string
		steps []step
	}{
		"without for": {
			"- alert: Hot\n  expr: temp > 90", []step{
				{0, "temp 80", nil},
				{minute, "temp 91", []string{"firing Hot"}},
				{2 * minute, "temp 80", []string{"resolved Hot"}},
			},
		},
		"pending, then firing": {
			"- alert: Hot\n  expr: temp > 90\n  for: 2m", []step{
				{0, "temp 91", []string{"pending Hot"}},
				{minute, "temp 95", []string{"pending Hot"}},
				{2 * minute, "", []string{"firing Hot"}},
				{3 * minute, "temp 1", []string{"resolved Hot"}},
			},
		},
		"keep_firing_for": {
			"- alert: Hot\n  expr: temp > 90\n  keep_firing_for: 3m", []step{
				{0, "temp 91", []string{"firing Hot"}},
				{minute, "temp 1", []string{"firing Hot"}},
				{2 * minute, "temp 91", []string{"firing Hot"}},
				{3 * minute, "temp 1", []string{"firing Hot"}},
				{5 * minute, "", []string{"firing Hot"}},
				{6 * minute, "", []string{"resolved Hot"}},
			},
		},
		"a resolved alert is kept for 15 minutes": {
			"- alert: Hot\n  expr: temp > 90", []step{
				{0, "temp 91", []string{"firing Hot"}},
				{minute, "temp 1", []string{"resolved Hot"}},
				{16 * minute, "", []string{"resolved Hot"}},
				{16*minute + time.Second, "", nil},
			},
		},
		"the first sample is no increase": {
			"- alert: Xid\n  expr: increase(xids_total[10m]) > 0", []step{
				{0, "xids_total 7", nil},
				{minute, "xids_total 7", nil},
				{2 * minute, "xids_total 8", []string{"firing Xid"}},
			},
		},
		"a target that is up": {
			"- alert: Up\n  expr: up{job=\"accel-exporter\",instance=\"n1\"} == 1", []step{
				{0, "temp 1", []string{"firing Up"}},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, group(c.rules))
			for _, s := range c.steps {
				switch s.page {
				case "":
				case "-":
					w.set("other 1")
				default:
					w.set(s.page)
				}
				w.at(s.at)
				if diff := cmp.Diff(s.want, w.alerts()); diff != "" {
					t.Fatalf("after %v (-want +got):\n%s", s.at, diff)
				}
			}
		})
	}
}

// TestSending: a firing alert is sent at once and every minute. A resolved alert is
// sent for 15 minutes. Each notification carries the time at which it ends: later for an
// alert about a device, which an exporter that restarts must not resolve.
func TestSending(t *testing.T) {
	w := newWorld(t, group("- alert: Hot\n  expr: temp > 90\n  for: 15s"), func(o *engine.Options) { o.ExternalURL = "http://n1:9100" })
	sent := map[string]int{}
	for tick := range 4 * 30 {
		temp := 91
		if tick >= 4*5 {
			temp = 1
		}
		w.set(fmt.Sprint("temp ", temp), fmt.Sprintf(`temp{device="a"} %d`, temp))
		w.at(time.Duration(tick) * 15 * time.Second)
		w.mu.Lock()
		for _, a := range w.sent {
			valid := 4 * time.Minute
			if a.Labels["device"] != "" {
				valid = 15 * time.Minute
			}
			if a.State == engine.Firing && (!a.ValidUntil.Equal(w.now.Add(valid)) || !a.EndsAt().Equal(a.ValidUntil)) {
				t.Errorf("at %v valid until %v, ends at %v", w.now, a.ValidUntil, a.EndsAt())
			}
			if a.State == engine.Inactive && !a.EndsAt().Equal(w.start.Add(5*time.Minute)) {
				t.Errorf("resolved at %v", a.EndsAt())
			}
			if !strings.HasPrefix(a.GeneratorURL, "http://n1:9100/") {
				t.Errorf("generator URL %q", a.GeneratorURL)
			}
		}
		w.mu.Unlock()
		for _, s := range w.take() {
			sent[s]++
		}
	}
	// Firing from 15 s to 5 min: at 15 s and then every 75 s, the first tick
	// after a minute. Resolved from 5 to 20 min likewise.
	want := map[string]int{"firing Hot": 4, "resolved Hot": 13, "firing Hot device=a": 4, "resolved Hot device=a": 13}
	if diff := cmp.Diff(want, sent); diff != "" {
		t.Error(diff)
	}
}

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

// TestSameLabels: a rule fails if two series of its result have the same labels.
func TestSameLabels(t *testing.T) {
	w := newWorld(t, group(`
- record: r
  expr: '{__name__=~"temp|wet"}'
- alert: A
  expr: '{__name__=~"temp|wet"} > 0'
- record: good
  expr: temp
`))
	w.set("temp 1", "wet 1")
	w.at(0)
	for _, name := range []string{"r", "A"} {
		if r := w.rule(name); r.Health != engine.HealthError || !strings.Contains(r.LastError, "same labels") {
			t.Errorf("%s: %s, %q", name, r.Health, r.LastError)
		}
	}
	if got := w.query("good"); len(got) != 1 {
		t.Errorf("good: %v", got)
	}
}

// TestLimitOfGroup: a rule fails if its result exceeds the limit of its group, as in
// Prometheus.
func TestLimitOfGroup(t *testing.T) {
	w := newWorld(t, "groups: [{name: g, limit: 1, rules: [{record: r, expr: temp}, {alert: A, expr: temp > 0}]}]")
	w.set(`temp{d="1"} 1`, `temp{d="2"} 1`)
	w.at(0)
	for _, name := range []string{"r", "A"} {
		if r := w.rule(name); r.Health != engine.HealthError || !strings.Contains(r.LastError, "limit is 1") {
			t.Errorf("%s: %s, %q", name, r.Health, r.LastError)
		}
	}
	if got := w.alerts(); got != nil {
		t.Errorf("alerts: %v", got)
	}
}
