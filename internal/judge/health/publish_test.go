package health_test

import (
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
