package health_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/judge/health"
)

// values returns the readings of a family by label values.
func values(d *collector.Device, m *collector.Metric) map[string]float64 {
	out := map[string]float64{}
	for _, r := range d.Readings {
		if r.Metric == m {
			out[strings.Join(r.Labels, " ")] = r.Value
		}
	}
	return out
}

// TestFailures: a device fails again only after it was healthy.
func TestFailures(t *testing.T) {
	j := health.New(health.Builtin(), health.Options{})
	now := start
	for i, c := range []struct {
		facts []fact
		want  float64
	}{
		{nil, 0},
		{facts(driver("reset")), 1},
		{facts(unseen), 1},
		{facts(driver("drain_p2p")), 1},
		{facts(driver("reset")), 1},
		{facts(driver("none")), 1},
		{facts(driver("reboot")), 2},
	} {
		now = now.Add(time.Minute)
		s := snapshot(now, nil, gpu(now, c.facts...))
		j.Judge(s)
		if got := values(&s.Devices[0], collector.DeviceFailures)[""]; got != c.want {
			t.Errorf("step %d: %v failures, want %v", i, got, c.want)
		}
	}
}

func TestReasons(t *testing.T) {
	j := health.New(health.Builtin(), health.Options{})
	first := start
	j.Judge(snapshot(first, news(xid(63, func(e *collector.Event) { e.Detail = "in the driver's words" })), gpu(first)))
	now := start.Add(time.Minute)
	s := snapshot(now,
		news(xid(63, func(e *collector.Event) { e.Detail = "the same in the driver's words" }), xid(777, func(e *collector.Event) { e.Detail = "NVRM: Xid (PCI:0000:1b:00): 777, news" }), xid(95, past(time.Hour))),
		gpu(now, driver("none"), set(collector.RowRemapPending, 1), set(collector.RowRemapPending, 1), set(collector.RepairPending, 1, "channel"), set(collector.RepairPending, 1, "tpc"), set(collector.ECCErrors, 3, "uncorrected", "sram")))
	j.Judge(s)
	want := collector.Verdict{
		State: "degraded", Action: "reset", Since: first,
		Reasons: []collector.Reason{
			{Code: "xid_95", Brief: "Xid 95", Severity: "degraded", Action: "reset", Since: start.Add(-time.Hour), Text: "Xid 95: an uncorrectable memory error may have affected every program on the GPU; logged before the start of the exporter; the driver lets work continue"},
			{Code: "xid_63", Brief: "Xid 63", Severity: "degraded", Action: "reset", Since: first, Text: "Xid 63: a bad row will be remapped, or a page retired, at the next reset; running work is not affected; 2 times, the last at 2026-03-01T12:01:00Z"},
			{Code: "xid_unknown", Brief: "Xid 777", Severity: "degraded", Action: "inspect", Since: now, Text: "Xid 777: a code that is not in the catalogue: NVRM: Xid (PCI:0000:1b:00): 777, news"},
			{Code: "ecc_uncorrected", Brief: "ECC uncorrected SRAM", Severity: "degraded", Action: "drain_and_reset", Since: now, Text: "uncorrectable memory errors since the driver was loaded: location sram"},
			{Code: "repair_pending", Brief: "repair pending channel and 1 more", Severity: "degraded", Action: "reset", Since: now, Text: "a repair is pending until the next reset: kind channel and 1 more"},
			{Code: "row_remap_pending", Brief: "row remap pending", Severity: "degraded", Action: "reset", Since: now, Text: "a memory row will be remapped at the next reset; running work is not affected"},
		},
	}
	want.Faults = s.Devices[0].Verdict.Faults // TestMemory has them
	if diff := cmp.Diff(want, *s.Devices[0].Verdict); diff != "" {
		t.Error(diff)
	}
}

// TestBriefs: the words for a message of one line name what a person looks for. A value
// is that with which a limit was first exceeded, so that they do not change with it.
func TestBriefs(t *testing.T) {
	for want, c := range map[string]struct {
		news  []collector.Event
		facts [][]fact // of one minute each
		kind  string
	}{
		"Xid 145 rlw_remap_0x40":        {news: news(xid(145, sub("rlw_remap_0x40")))},
		"SXid 22003":                    {news: news(event(collector.EventSXid, func(e *collector.Event) { e.Code = 22003 }))},
		"AER fatal":                     {news: news(event(collector.EventAER, sub("fatal")))},
		"device lost":                   {facts: [][]fact{{down(collector.ReasonLost)}}},
		"recovery action drain p2p":     {facts: [][]fact{{driver("drain_p2p")}}},
		"NVLink down link 3 and 1 more": {facts: [][]fact{{set(collector.NVLinkUp, 0, "3"), set(collector.NVLinkUp, 0, "4"), set(collector.NVLinkUp, 1, "5")}}},
		"ECC uncorrected DRAM":          {facts: [][]fact{{set(collector.ECCErrors, 1, "uncorrected", "dram")}}},
		"shutdown near, margin 0.5":     {kind: collector.ReasonLimit, facts: [][]fact{{set(collector.TemperatureMargin, 0.5, "shutdown")}}},
		"temperature memory at 101.5, limit 100": {kind: collector.ReasonLimit, facts: [][]fact{
			{set(collector.TemperatureCelsius, 101.5, "memory"), set(collector.TemperatureLimit, 100, "memory", "critical")},
			{set(collector.TemperatureCelsius, 104, "memory"), set(collector.TemperatureLimit, 100, "memory", "critical")},
		}},
		"throttled by heat": {kind: collector.ReasonThrottling, facts: [][]fact{{set(collector.ThrottleActive, 1, "hw_thermal")}}},
	} {
		j := health.New(health.Builtin(), health.Options{})
		last := slices.Concat(c.facts, [][]fact{nil})[max(len(c.facts)-1, 0)]
		for i, f := range slices.Concat(c.facts, slices.Repeat([][]fact{last}, 6)) {
			now := start.Add(time.Duration(i) * time.Minute)
			var e []collector.Event
			if i == 0 {
				e = c.news
			}
			s := snapshot(now, e, gpu(now, f...))
			j.Judge(s)
			if r := s.Devices[0].Verdict.Reasons; i > 5 && (len(r) == 0 || r[0].Brief != want || r[0].Kind != c.kind) {
				t.Errorf("%s: %+v", want, r)
			}
		}
	}
}

// TestSince: Since is the start of the state. A change of the reasons does not change
// it.
func TestSince(t *testing.T) {
	j := health.New(health.Builtin(), health.Options{})
	var since []time.Duration
	for i, f := range [][]fact{{}, {driver("reset")}, {driver("reset"), set(collector.RowRemapPending, 1)}, {driver("reboot")}, {driver("none")}, {driver("none")}} {
		now := start.Add(time.Duration(i) * time.Minute)
		s := snapshot(now, nil, gpu(now, f...))
		j.Judge(s)
		since = append(since, s.Devices[0].Verdict.Since.Sub(start))
	}
	if diff := cmp.Diff([]time.Duration{0, minute, minute, minute, 4 * minute, 4 * minute}, since); diff != "" {
		t.Error(diff)
	}
}

// TestVerdictsAreImmutable: a published verdict does not change.
func TestVerdictsAreImmutable(t *testing.T) {
	j := health.New(health.Builtin(), health.Options{})
	a := snapshot(start, news(xid(95), xid(32)), gpu(start))
	j.Judge(a)
	was := *a.Devices[0].Verdict
	was.Reasons = append([]collector.Reason(nil), was.Reasons...)
	readings := append([]collector.Reading(nil), a.Devices[0].Readings...)
	b := snapshot(start.Add(time.Minute), news(xid(46), xid(32)), gpu(start.Add(time.Minute), driver("reboot")))
	j.Judge(b)
	if diff := cmp.Diff(was, *a.Devices[0].Verdict); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(readings, a.Devices[0].Readings, cmp.Comparer(func(x, y *collector.Metric) bool { return x == y })); diff != "" {
		t.Error(diff)
	}
}

// TestReasonsListed: Reasons lists the reason of every event.
func TestReasonsListed(t *testing.T) {
	c := health.Builtin()
	listed := map[string]bool{}
	for _, r := range c.Reasons() {
		if listed[r] {
			t.Errorf("%s is listed twice", r)
		}
		listed[r] = true
	}
	events := news(xid(777), event(collector.EventSXid, func(e *collector.Event) { e.Code = 7 }), event("no_such"))
	for _, e := range c.Entries() {
		events = append(events, event(kind(&e), sub(e.Sub), func(ev *collector.Event) { ev.Code = uint64(e.Code) }))
	}
	found := map[string]bool{}
	for _, e := range events {
		d := gpu(start, driver("reset"))
		d.Down = collector.ReasonLost
		s := snapshot(start, news(e), d, device("away", collector.GPU, start, unseen))
		health.New(c, health.Options{}).Judge(s)
		for i := range s.Devices {
			for _, r := range s.Devices[i].Verdict.Reasons {
				found[r.Code] = true
				if !listed[r.Code] {
					t.Errorf("%+v has the reason %s, which is not listed", e, r.Code)
				}
			}
		}
	}
	for _, r := range []string{"xid_unknown", "sxid_unknown", "event_unknown", "xid_79", "xid_145_rlw_remap_0x40", "sxid_22003", "event_aer_fatal", "recovery_action_reset", "no_answer"} {
		if !found[r] {
			t.Errorf("no event has the reason %s", r)
		}
	}
}
