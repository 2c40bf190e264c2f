package incidents_test

import (
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/accel-exporter/accel-exporter/test/incidents"
)

const s = time.Second

// labels are those of an alert: its name, its severity and pairs.
func labels(alert, severity string, pairs ...string) map[string]string {
	m := map[string]string{"alertname": alert, "severity": severity}
	for i := 0; i+1 < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return m
}

func TestJudge(t *testing.T) {
	lost := labels("Lost", "critical", "device", "a", "pod", "p")
	want := incidents.Expectation{
		Alert: "Lost", Labels: map[string]string{"device": "a"}, Annotations: map[string]string{"summary": "p"}, Since: 3 * s, By: 10 * s,
	}
	with := func(r incidents.Resolution) incidents.Expectation {
		e := want
		e.Resolves = r
		return e
	}
	hit := map[string]string{"summary": "GPU 2 failed (Xid 79): ns/p."}
	fires := incidents.Arrival{At: 5 * s, Labels: lost, Annotations: hit}
	resolved := func(at time.Duration) incidents.Arrival {
		return incidents.Arrival{At: at, Resolved: true, Labels: lost, Annotations: hit}
	}
	other := maps.Clone(lost)
	other["device"] = "b"
	for _, tc := range []struct {
		name     string
		want     incidents.Expectation
		arrivals []incidents.Arrival
		outcome  incidents.Outcome
		toPage   time.Duration
		wrong    int // false alerts
	}{
		{name: "caught", want: want, arrivals: []incidents.Arrival{fires}, outcome: incidents.Caught, toPage: 2 * s},
		{name: "sent twice", want: want, arrivals: []incidents.Arrival{fires, fires}, outcome: incidents.Caught, toPage: 2 * s},
		{name: "missed", want: want, outcome: incidents.Missed},
		{name: "late", want: want, arrivals: []incidents.Arrival{{At: 11 * s, Labels: lost, Annotations: hit}}, outcome: incidents.Late, toPage: 8 * s},
		{name: "before its cause", want: want, arrivals: []incidents.Arrival{{At: 2 * s, Labels: lost, Annotations: hit}}, outcome: incidents.Missed, wrong: 1},
		{name: "another device", want: want, arrivals: []incidents.Arrival{{At: 5 * s, Labels: other, Annotations: hit}}, outcome: incidents.WrongLabel, wrong: 1},
		{name: "another device too", want: want, arrivals: []incidents.Arrival{{At: 4 * s, Labels: other, Annotations: hit}, fires}, outcome: incidents.Caught, toPage: 2 * s, wrong: 1},
		{name: "does not name the pod", want: want, arrivals: []incidents.Arrival{{At: 5 * s, Labels: lost}}, outcome: incidents.WrongText, toPage: 2 * s},
		{name: "resolves in time", want: with(incidents.Resolution{By: 20 * s}), arrivals: []incidents.Arrival{fires, resolved(15 * s)}, outcome: incidents.Caught, toPage: 2 * s},
		{name: "resolves too late", want: with(incidents.Resolution{By: 20 * s}), arrivals: []incidents.Arrival{fires, resolved(21 * s)}, outcome: incidents.Unresolved, toPage: 2 * s},
		{name: "comes back", want: with(incidents.Resolution{By: 20 * s}), arrivals: []incidents.Arrival{fires, resolved(8 * s), {At: 9 * s, Labels: lost}}, outcome: incidents.Unresolved, toPage: 2 * s},
		{name: "lasts", want: with(incidents.Resolution{Never: true}), arrivals: []incidents.Arrival{fires}, outcome: incidents.Caught, toPage: 2 * s},
		{name: "must last", want: with(incidents.Resolution{Never: true}), arrivals: []incidents.Arrival{fires, resolved(8 * s)}, outcome: incidents.Resolved, toPage: 2 * s},
		{name: "resolves and need not", want: want, arrivals: []incidents.Arrival{fires, resolved(8 * s)}, outcome: incidents.Caught, toPage: 2 * s},
	} {
		t.Run(tc.name, func(t *testing.T) {
			v := incidents.Judge(&incidents.Incident{Expect: []incidents.Expectation{tc.want}}, tc.arrivals, make([]incidents.Notice, 1), nil)
			if f := v.Findings[0]; f.Outcome != tc.outcome || f.ToPage != tc.toPage {
				t.Errorf("%s after %s; want %s after %s", f.Outcome, f.ToPage, tc.outcome, tc.toPage)
			}
			if len(v.False) != tc.wrong {
				t.Errorf("%d false alerts; want %d", len(v.False), tc.wrong)
			}
			if good := tc.outcome == incidents.Caught && tc.wrong == 0; v.Good() != good {
				t.Errorf("good is %t", v.Good())
			}
		})
	}
}

// What is neither expected nor allowed is false, but for info.
func TestFalse(t *testing.T) {
	i := &incidents.Incident{
		Never: []incidents.Pattern{{Alert: "Info"}},
		Allow: []incidents.Pattern{{Alert: "Idle", Labels: map[string]string{"pod": "p"}}},
	}
	v := incidents.Judge(i, []incidents.Arrival{
		{At: 1 * s, Labels: labels("Critical", "critical")},
		{At: 2 * s, Labels: labels("Warning", "warning")},
		{At: 3 * s, Labels: labels("Warning", "warning")},
		{At: 4 * s, Labels: labels("Info", "info")},
		{At: 5 * s, Labels: labels("Info", "info")},
		{At: 6 * s, Labels: labels("Idle", "warning", "pod", "p")},
		{At: 7 * s, Labels: labels("Idle", "warning", "pod", "q")},
		{At: 8 * s, Labels: labels("Resolved", "critical"), Resolved: true},
	}, nil, nil)
	var got []string
	for _, a := range v.False {
		got = append(got, a.Labels["alertname"]+a.Labels["pod"])
	}
	if d := cmp.Diff([]string{"Critical", "Warning", "Info", "Idleq"}, got); d != "" {
		t.Errorf("want -, got +:\n%s", d)
	}
}

// A critical alert is one page, unless the incident states how many devices fail.
func TestPages(t *testing.T) {
	critical := []incidents.Arrival{{At: 2 * s, Labels: labels("Lost", "critical")}}
	warning := []incidents.Arrival{{At: 2 * s, Labels: labels("Lost", "warning")}}
	for _, tc := range []struct {
		arrivals     []incidents.Arrival
		stated, have int
		good         bool
	}{
		{critical, 0, 1, true},
		{critical, 0, 0, false},
		{critical, 0, 2, false},
		{critical, 2, 2, true},
		{critical, 2, 1, false},
		{warning, 0, 0, true},
		{warning, 0, 1, true}, // of an alert that is allowed
		{warning, 0, 2, false},
	} {
		i := &incidents.Incident{Pages: tc.stated, Expect: []incidents.Expectation{{Alert: "Lost", By: 9 * s}}}
		if v := incidents.Judge(i, tc.arrivals, make([]incidents.Notice, tc.have), nil); v.Good() != tc.good {
			t.Errorf("%d pages of %v, stated %d: good is %t", tc.have, tc.arrivals, tc.stated, v.Good())
		}
	}
}

// The number of tickets matters only where it is stated.
func TestTickets(t *testing.T) {
	for _, tc := range []struct {
		stated, have int
		good         bool
	}{{0, 3, true}, {1, 1, true}, {1, 2, false}, {2, 1, false}} {
		i := &incidents.Incident{Tickets: tc.stated}
		if v := incidents.Judge(i, nil, nil, make([]incidents.Notice, tc.have)); v.Good() != tc.good {
			t.Errorf("%d tickets, stated %d: good is %t", tc.have, tc.stated, v.Good())
		}
	}
}

func TestReport(t *testing.T) {
	e := func(alert string) incidents.Expectation {
		return incidents.Expectation{Alert: alert, Labels: map[string]string{"device": "a"}, Since: 1 * s, By: 9 * s}
	}
	lost := labels("Lost", "critical", "device", "a")
	incident := &incidents.Incident{Name: "gpu-lost", Tickets: 2, Expect: []incidents.Expectation{e("Lost"), e("Slow"), e("Gone")}}
	day := &incidents.Incident{Name: "healthy-day"}
	r := incidents.Report{Factor: 60, Alerts: map[string]incidents.Alert{
		"Lost": {Group: "accel-incidents", Severity: "critical"}, "Slow": {Group: "accel-incidents", For: time.Minute, Severity: "warning"},
	}}
	if !r.Good() {
		t.Error("an empty report is bad")
	}
	r.Verdicts = []*incidents.Verdict{incidents.Judge(day, nil, make([]incidents.Notice, 1), nil)}
	if r.Good() {
		t.Error("a page for a healthy day is good")
	}
	r.Verdicts = []*incidents.Verdict{
		incidents.Judge(incident, []incidents.Arrival{
			{At: 1250 * time.Millisecond, Labels: lost},
			{At: 4 * s, Labels: labels("Slow", "warning", "device", "a")},
			{At: 5 * s, Labels: labels("Gone", "warning", "device", "b"), Annotations: map[string]string{"summary": "GPU 1 is gone"}},
		}, []incidents.Notice{{At: 6 * s, Alerts: []incidents.Arrival{{Labels: lost}}}, {At: 12 * s, Alerts: []incidents.Arrival{{Labels: lost}}}},
			[]incidents.Notice{{At: 14 * s, Alerts: []incidents.Arrival{{Labels: labels("Slow", "warning", "device", "a")}}}}),
		incidents.Judge(day, nil, nil, nil),
		{Incident: &incidents.Incident{Name: "healthy-broken"}, Err: errors.New("it does not start")},
	}
	if r.Good() {
		t.Error("a report with a missed alert is good")
	}
	var b strings.Builder
	for _, v := range r.Verdicts {
		if err := v.Line(&b); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Print(&b); err != nil {
		t.Fatal(err)
	}
	want := `FAIL  gpu-lost                           caught 2 of 3, false 1, pages 2, tickets 1
      wrong label: Gone{device=a}: it has device="b"
      false: at 5s Gone{device=b} (warning): GPU 1 is gone
      pages: +1
      page: at 6s Lost{device=a}
      page: at 12s Lost{device=a}
      tickets: -1
      ticket: at 14s Slow{device=a}
ok    healthy-day                        healthy, false 0, pages 0, tickets 0
FAIL  healthy-broken                     healthy, false 0, pages 0, tickets 0: it does not start

incidents                                1, of which 1 not as stated
healthy days                             2, of which 1 silent
not played to the end                    1
caught                                   2 of 3 alerts
missed                                   0
late                                     0
wrong label                              1
wrong text                               0
unresolved                               0
resolved                                 0
false                                    1
pages                                    2, of which 1 doubled; the incidents deserve 1
tickets                                  1
time to page, verdicts that do not wait  min 250ms, median 250ms, p90 250ms, p99 250ms, max 250ms of 1
time to page, the others, played         min 3s, median 3s, p90 3s, p99 3s, max 3s of 1; 1s stands for 1m0s
`
	if d := cmp.Diff(want, b.String()); d != "" {
		t.Errorf("want -, got +:\n%s", d)
	}
}

func TestSpread(t *testing.T) {
	var hundred []time.Duration
	for n := range 100 {
		hundred = append(hundred, time.Duration(100-n)*time.Millisecond)
	}
	const ms = time.Millisecond
	for _, tc := range []struct {
		times []time.Duration
		want  incidents.Distribution
	}{
		{nil, incidents.Distribution{}},
		{[]time.Duration{7}, incidents.Distribution{N: 1, Min: 7, Median: 7, P90: 7, P99: 7, Max: 7}},
		{[]time.Duration{2, 1}, incidents.Distribution{N: 2, Min: 1, Median: 1, P90: 2, P99: 2, Max: 2}},
		{hundred, incidents.Distribution{N: 100, Min: ms, Median: 50 * ms, P90: 90 * ms, P99: 99 * ms, Max: 100 * ms}},
	} {
		if got := incidents.Spread(tc.times); got != tc.want {
			t.Errorf("%v: found %+v; want %+v", tc.times, got, tc.want)
		}
	}
}
