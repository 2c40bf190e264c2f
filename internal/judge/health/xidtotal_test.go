package health_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/judge/health"
)

// TestXidIncidents: an incident is what fails the device, with all Xids that come
// with it.
func TestXidIncidents(t *testing.T) {
	j := health.New(health.Builtin(), health.Options{})
	now := start
	for i, c := range []struct {
		after time.Duration
		news  []collector.Event
		facts []fact
		want  float64
	}{
		{news: []collector.Event{xid(48, past(time.Minute))}, want: 0}, // from before the start
		{after: time.Minute, news: []collector.Event{xid(31), xid(121), xid(94), xid(63)}, want: 0},
		{after: time.Minute, news: []collector.Event{xid(48), xid(48, again), xid(63), xid(94)}, want: 1},
		{after: 9 * time.Minute, news: []collector.Event{xid(48)}, want: 1},
		// Still failed: nothing has worked in between.
		{after: time.Hour, news: []collector.Event{xid(119)}, want: 1},
		// It was reset.
		{after: time.Minute, facts: []fact{down(collector.ReasonResetRequired)}, want: 1},
		{after: time.Minute, want: 1},
		{after: time.Hour, news: []collector.Event{xid(58)}, want: 2},
		{after: time.Minute, facts: []fact{down(collector.ReasonResetRequired)}, want: 2},
		{after: time.Minute, want: 2},
		{after: time.Hour, news: []collector.Event{xid(145, sub("rlw_remap_0x8"))}, want: 2},
		{after: time.Hour, news: []collector.Event{xid(145, sub("rlw_remap_0x40"))}, want: 3},
	} {
		now = now.Add(c.after)
		s := snapshot(now, c.news, gpu(now, append(c.facts, set(collector.XidErrors, 0, "48"))...), device("card", collector.FPGA, now))
		j.Judge(s)
		if diff := cmp.Diff(map[string]float64{"": c.want}, values(&s.Devices[0], collector.XidIncidents)); diff != "" {
			t.Errorf("step %d, %s: %s", i, verdict(&s.Devices[0]), diff)
		}
		if got := values(&s.Devices[1], collector.XidIncidents); len(got) != 0 {
			t.Errorf("step %d: a card that has no Xids counts incidents: %v", i, got)
		}
	}
}

// TestXidTotals: Xids are counted by kind. Counts keep their kind when a catalogue
// changes the kind of a number.
func TestXidTotals(t *testing.T) {
	moved, err := health.Parse("x.yml", []byte("xid: [{code: 31, total: hardware}]"))
	if err != nil {
		t.Fatal(err)
	}
	counts := func(n48, n31, n45, n9999 float64) []fact {
		return []fact{
			set(collector.XidErrors, n48, "48"), set(collector.XidErrors, n31, "31"),
			set(collector.XidErrors, n45, "45"), set(collector.XidErrors, n9999, "9999"),
		}
	}
	want := func(hardware, application, other float64) map[string]float64 {
		return map[string]float64{"hardware": hardware, "application": application, "other": other}
	}
	j := health.New(health.Builtin(), health.Options{})
	for i, c := range []struct {
		apply *health.Catalogue
		facts []fact
		want  map[string]float64
	}{
		{facts: counts(0, 0, 0, 0), want: want(0, 0, 0)},
		{facts: counts(1, 5, 2, 1), want: want(1, 5, 3)},
		{facts: counts(1, 5, 2, 1), want: want(1, 5, 3)},
		{apply: moved, facts: counts(1, 5, 2, 1), want: want(1, 5, 3)},
		{facts: counts(2, 7, 2, 1), want: want(4, 5, 3)},
		// A round without Xid counters does not decrease the totals.
		{want: want(4, 5, 3)},
	} {
		if c.apply != nil {
			j.Apply(c.apply)
		}
		now := start.Add(time.Duration(i) * time.Second)
		s := snapshot(now, nil, gpu(now, c.facts...), device("card", collector.FPGA, now))
		j.Judge(s)
		if diff := cmp.Diff(c.want, values(&s.Devices[0], collector.XidEvents)); diff != "" {
			t.Errorf("step %d: %s", i, diff)
		}
		if got := values(&s.Devices[1], collector.XidEvents); len(got) != 0 {
			t.Errorf("step %d: a card that has no Xids counts them: %v", i, got)
		}
	}
}
