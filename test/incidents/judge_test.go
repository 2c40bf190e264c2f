package incidents_test

import (
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/accel-exporter/accel-exporter/test/incidents"
)

const s = time.Second

// labels are the labels of an alert: its name, its severity and pairs.
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
		{name: "missed", want: want, outcome: incidents.Missed},
		{name: "late", want: want, arrivals: []incidents.Arrival{{At: 11 * s, Labels: lost, Annotations: hit}}, outcome: incidents.Late, toPage: 8 * s},
		{name: "before its cause", want: want, arrivals: []incidents.Arrival{{At: 2 * s, Labels: lost, Annotations: hit}}, outcome: incidents.Missed, wrong: 1},
		{name: "another device", want: want, arrivals: []incidents.Arrival{{At: 5 * s, Labels: other, Annotations: hit}}, outcome: incidents.WrongLabel, wrong: 1},
		{name: "does not name the pod", want: want, arrivals: []incidents.Arrival{{At: 5 * s, Labels: lost}}, outcome: incidents.WrongText, toPage: 2 * s},
		{name: "resolves in time", want: with(incidents.Resolution{By: 20 * s}), arrivals: []incidents.Arrival{fires, resolved(15 * s)}, outcome: incidents.Caught, toPage: 2 * s},
		{name: "resolves too late", want: with(incidents.Resolution{By: 20 * s}), arrivals: []incidents.Arrival{fires, resolved(21 * s)}, outcome: incidents.Unresolved, toPage: 2 * s},
		{name: "must last", want: with(incidents.Resolution{Never: true}), arrivals: []incidents.Arrival{fires, resolved(8 * s)}, outcome: incidents.Resolved, toPage: 2 * s},
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

// A critical alert is one page, unless the incident states how many devices fail; the
// number of tickets matters only where it is stated.
func TestNotifications(t *testing.T) {
	critical := []incidents.Arrival{{At: 2 * s, Labels: labels("Lost", "critical")}}
	warning := []incidents.Arrival{{At: 2 * s, Labels: labels("Lost", "warning")}}
	for _, tc := range []struct {
		arrivals                       []incidents.Arrival
		stated, pages, wanted, tickets int
		good                           bool
	}{
		{critical, 0, 1, 0, 3, true},
		{critical, 0, 0, 0, 0, false},
		{critical, 0, 2, 0, 0, false},
		{critical, 2, 2, 1, 1, true},
		{warning, 0, 1, 0, 0, true}, // of an alert that is allowed
		{warning, 0, 2, 0, 0, false},
		{warning, 0, 0, 1, 2, false},
	} {
		i := &incidents.Incident{Pages: tc.stated, Tickets: tc.wanted, Expect: []incidents.Expectation{{Alert: "Lost", By: 9 * s}}}
		if v := incidents.Judge(i, tc.arrivals, make([]incidents.Notice, tc.pages), make([]incidents.Notice, tc.tickets)); v.Good() != tc.good {
			t.Errorf("%+v: good is %t", tc, v.Good())
		}
	}
}
