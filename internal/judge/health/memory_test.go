package health_test

import (
	"testing"

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
		if len(after.Node) != 1 || after.Node[0].Metric != collector.FaultMemory {
			t.Errorf("%v", after.Node)
		}
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
