package health_test

import (
	"testing"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/judge/health"
)

// After a restart the faults that only an event reported are as before, whatever the
// kernel log repeats of them, until a reset, also one that happened meanwhile.
func TestMemory(t *testing.T) {
	before := snapshot(start, news(xid(95), xid(119)), gpu(start, set(collector.EnergyJoules, 5000)))
	health.New(health.Builtin(), health.Options{}).Judge(before)
	v := before.Devices[0].Verdict
	restart := func(energy float64, events ...collector.Event) (string, string) {
		j := health.New(health.Builtin(), health.Options{Faults: v.Faults, Energy: map[string]float64{gpuID: 5000}, Since: start})
		now := start.Add(minute)
		j.Judge(snapshot(now, nil)) // no source has found the device yet
		after := snapshot(now.Add(second), events, gpu(now, set(collector.EnergyJoules, energy)))
		j.Judge(after)
		return verdict(&after.Devices[0]), after.Devices[0].Verdict.Reasons[0].Text
	}
	again := xid(95, past(0))
	again.Time = start
	for name, events := range map[string][]collector.Event{"no log": nil, "a log": news(again)} {
		if got, text := restart(6000, events...); got != verdict(&before.Devices[0]) || text != v.Reasons[0].Text {
			t.Errorf("%s: %s: %s, want %s: %s", name, got, text, verdict(&before.Devices[0]), v.Reasons[0].Text)
		}
	}
	j := health.New(health.Builtin(), health.Options{Faults: v.Faults, Energy: map[string]float64{gpuID: 5000}})
	reset := snapshot(start.Add(minute), nil, gpu(start.Add(minute), set(collector.EnergyJoules, 10)))
	if j.Judge(reset); verdict(&reset.Devices[0]) != "healthy none" {
		t.Error(verdict(&reset.Devices[0]))
	}
}

// What an exporter that starts long after the boot does not know is shown, unless the
// kernel log has it, or a reset or the driver's recommendation has ended it.
func TestUnknownFaults(t *testing.T) {
	boot := start.Add(-24 * time.Hour)
	log := func(begin time.Time) []collector.Reading {
		return []collector.Reading{{Metric: collector.KernelLogBegin, Value: float64(begin.Unix())}}
	}
	for name, c := range map[string]struct {
		since time.Time
		node  []collector.Reading
		facts []fact
		news  []collector.Event
		want  time.Time
	}{
		"no memory":            {since: start, want: start},
		"started with a boot":  {since: boot.Add(minute)},
		"a log since the boot": {since: start, node: log(boot)},
		"a shorter log":        {since: start, node: log(boot.Add(10 * time.Hour)), want: boot.Add(10 * time.Hour)},
		"a log that is empty":  {since: start, node: log(start.Add(second)), want: start},
		"the driver's none":    {since: start, facts: []fact{driver("none")}},
		"the driver's reset":   {since: start, facts: []fact{driver("reset")}, want: start},
		"a load of the driver": {since: start, news: news(collector.Event{Kind: collector.EventDriverLoaded, Device: gpuID})},
	} {
		j := health.New(health.Builtin(), health.Options{Since: c.since, Boot: boot})
		s := snapshot(start.Add(minute), c.news, gpu(start.Add(minute), c.facts...))
		s.Node = c.node
		j.Judge(s)
		var got time.Time
		for _, r := range s.Devices[0].Readings {
			if r.Metric == collector.FaultsUnknown {
				got = time.Unix(int64(r.Value), 0).UTC()
			}
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
