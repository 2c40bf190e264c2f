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

func TestFamilies(t *testing.T) {
	j := health.New(health.Builtin(), health.Options{})
	s := snapshot(start, news(xid(95), xid(32)), gpu(start), device("part", collector.GPU, start, childOf(gpuID)))
	j.Judge(s)
	for _, c := range []struct {
		device int
		metric *collector.Metric
		want   map[string]float64
	}{
		{0, collector.DeviceHealth, map[string]float64{"healthy": 0, "degraded": 0, "failed": 1, "unknown": 0}},
		{0, collector.DeviceAction, map[string]float64{
			"none": 0, "inspect": 0, "update_software": 0, "restart_app": 0, "drain_p2p": 0, "recover_imex_domain": 0,
			"reprogram": 0, "drain_and_reset": 0, "reset": 1, "restart_vm": 0, "reboot": 0, "replace": 0,
		}},
		{0, collector.DeviceHealthReason, map[string]float64{"xid_95 failed": 1, "xid_32 degraded": 1}},
		{0, collector.DeviceFailures, map[string]float64{"": 1}},
		{1, collector.DeviceHealth, map[string]float64{"healthy": 0, "degraded": 0, "failed": 1, "unknown": 0}},
		{1, collector.DeviceHealthReason, map[string]float64{"xid_95 failed": 1, "xid_32 degraded": 1}},
		{1, collector.DeviceFailures, map[string]float64{}},
	} {
		if diff := cmp.Diff(c.want, values(&s.Devices[c.device], c.metric)); diff != "" {
			t.Errorf("device %d, %s: %s", c.device, c.metric.Name, diff)
		}
	}
	if len(s.Distributions) != 1 || s.Distributions[0].Count() != 0 {
		t.Errorf("want one empty histogram after the first failure: %+v", s.Distributions)
	}
}

// TestOutages: number of failures of a GPU, and number and duration of its outages.
func TestOutages(t *testing.T) {
	j := health.New(health.Builtin(), health.Options{})
	now := start
	var last *collector.Snapshot
	var shared []collector.Distribution
	judge := func(after time.Duration, e []collector.Event, f ...fact) {
		now = now.Add(after)
		last = snapshot(now, e, gpu(now, f...))
		j.Judge(last)
	}
	counts := func() (failures float64, count uint64, sum float64) {
		for _, d := range last.Distributions {
			if d.Metric != collector.DeviceRecovery || d.Device != gpuID {
				t.Fatalf("distribution of %s for %q", d.Metric.Name, d.Device)
			}
			count, sum = d.Count(), d.Sum
		}
		return values(&last.Devices[0], collector.DeviceFailures)[""], count, sum
	}
	expect := func(failures float64, count uint64, sum float64) {
		t.Helper()
		if f, c, s := counts(); f != failures || c != count || s != sum {
			t.Errorf("%v failures, %d outages of %v s; want %v, %d, %v", f, c, s, failures, count, sum)
		}
	}
	judge(0, nil)
	expect(0, 0, 0)
	if len(last.Distributions) != 0 {
		t.Error("a device that never failed has a histogram")
	}
	judge(second, nil, driver("reset"))
	expect(1, 0, 0)
	shared = last.Distributions
	judge(minute, nil, unseen) // still failed, then unknown
	judge(second, news(event(collector.EventDriverLoaded, of(""))), unseen)
	judge(minute, nil, driver("drain_p2p")) // degraded is not healthy
	judge(second, nil, driver("reset"))     // nor another failure
	expect(1, 0, 0)
	judge(minute, nil, driver("none"))
	expect(1, 1, 182)
	judge(minute, nil, driver("none"))
	expect(1, 1, 182)
	judge(second, nil, driver("reboot"))
	judge(second, nil, driver("none"))
	expect(2, 2, 183)
	if shared[0].Count() != 0 {
		t.Error("a published Snapshot has changed")
	}
}

// TestOutageOfAdopted: a GPU that failed before the driver reported it has one failure. A
// reset ends it: the events of an address are added to a
// device once.
func TestOutageOfAdopted(t *testing.T) {
	for _, c := range []struct {
		name   string
		before []collector.Device
		lasted float64 // seconds, from when there is a device
	}{
		{"known on the bus", []collector.Device{device(gpuAt, collector.GPU, start, at(gpuAt), unseen)}, 120},
		{"not known", nil, 60},
	} {
		t.Run(c.name, func(t *testing.T) {
			j := health.New(health.Builtin(), health.Options{})
			verdicts(t, j, snapshot(start, news(xid(119, of(gpuAt))), c.before...))
			for i, want := range []string{"failed reset xid_119", "healthy none", "healthy none"} {
				now := start.Add(time.Duration(i+1) * time.Minute)
				s := snapshot(now, nil, gpu(now, set(collector.EnergyJoules, []float64{100, 50, 60}[i])))
				same(t, verdicts(t, j, s), map[string]string{gpuID: want})
				if got := values(&s.Devices[0], collector.DeviceFailures)[""]; got != 1 || len(s.Distributions) != 1 || s.Distributions[0].Device != gpuID {
					t.Errorf("step %d: %v failures, %+v", i, got, s.Distributions)
				} else if d := s.Distributions[0]; i > 0 && (d.Count() != 1 || d.Sum != c.lasted) {
					t.Errorf("step %d: %+v", i, d)
				}
			}
		})
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

// TestTextOfOneFault: an event that is equivalent to another fault is reported as that
// fault, once.
func TestTextOfOneFault(t *testing.T) {
	for name, e := range map[string][]collector.Event{
		"bus loss and Xid":        news(xid(79), event(collector.EventBusLoss)),
		"bus loss alone":          news(event(collector.EventBusLoss)),
		"a consequence":           news(xid(79), xid(45, cause(79)), xid(45, cause(79))),
		"a consequence alone":     news(xid(45, cause(79))),
		"NVML and the kernel log": news(xid(79), xid(79, again)),
	} {
		j := health.New(health.Builtin(), health.Options{})
		s := snapshot(start, e, gpu(start))
		j.Judge(s)
		if r := s.Devices[0].Verdict.Reasons; len(r) != 1 || r[0].Text != "Xid 79: the GPU no longer answers over PCIe" {
			t.Errorf("%s: %+v", name, r)
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

// TestReasonSince: the start of a reason changes each time the reason appears again.
func TestReasonSince(t *testing.T) {
	j := health.New(health.Builtin(), health.Options{})
	for i, blind := range []bool{true, true, false, true} {
		now := start.Add(time.Duration(i) * time.Minute)
		f := facts()
		if blind {
			f = facts(unseen)
		}
		s := snapshot(now, nil, gpu(now, f...))
		j.Judge(s)
		want := []time.Duration{0, 0, 0, 3 * minute}[i]
		if v := s.Devices[0].Verdict; blind && v.Reasons[0].Since != start.Add(want) {
			t.Errorf("step %d: %+v", i, v)
		}
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
		{after: 2 * time.Second, want: 1},
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
