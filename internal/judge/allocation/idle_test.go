package allocation_test

import (
	"testing"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/judge/allocation"
)

// step is a time in which the device has the facts. There is a Snapshot every 10 s.
type step struct {
	lasts time.Duration
	facts []fact
	// idle, total and last are the values at the end of the step, in seconds; last
	// is relative to the start. -1 means absent.
	idle, total, last float64
}

func f(facts ...fact) []fact { return facts }

const mib = 1 << 20

var idleCases = []struct {
	name  string
	idle  func(*allocation.Idle)
	steps []step
}{
	{"an active GPU", nil, []step{{5 * time.Minute, f(compute(0.9)), 0, 0, 300}}},
	{"an idle GPU", nil, []step{{5 * time.Minute, f(compute(0)), 300, 300, -1}}},
	{"a pause shorter than the grace period", nil, []step{
		{time.Minute, f(compute(1)), 0, 0, 60},
		{50 * time.Second, f(compute(0)), 0, 0, 60},
		{time.Minute, f(compute(1)), 0, 0, 170},
	}},
	{"a pause longer than the grace period counts from its beginning", nil, []step{
		{time.Minute, f(compute(1)), 0, 0, 60},
		{2 * time.Minute, f(compute(0)), 120, 120, 60},
		{time.Minute, f(compute(1)), 0, 120, 240},
		{90 * time.Second, f(compute(0.005)), 90, 210, 240},
	}},
	{"no grace period", func(i *allocation.Idle) { i.Grace = 0 }, []step{{10 * time.Second, f(compute(0)), 10, 10, -1}}},
	{"no grace period, and counters that are read rarely", func(i *allocation.Idle) { i.Grace = 0 }, []step{
		{10 * time.Second, f(compute(0), set(collector.NVLinkTransmit, 0, "0")), 0, 0, -1},
		{10 * time.Second, f(compute(0), set(collector.NVLinkTransmit, 1e9, "0")), 0, 0, 20},
		{10 * time.Second, f(compute(0), set(collector.NVLinkTransmit, 1e9, "0")), 0, 0, 20}, // not read since
		{10 * time.Second, f(compute(0), set(collector.NVLinkTransmit, 2e9, "0")), 0, 0, 40},
		{20 * time.Second, f(compute(0), set(collector.NVLinkTransmit, 2e9, "0")), 20, 20, 40},
	}},
	{"at the floor", nil, []step{{2 * time.Minute, f(compute(0.01)), 120, 120, -1}, {10 * time.Second, f(compute(0.02)), 0, 120, 130}}},
	{"only the encoder is active", nil, []step{{2 * time.Minute, f(compute(0), engine("encoder", 0.3)), 0, 0, 120}}},
	{"only the memory is active", nil, []step{{2 * time.Minute, f(compute(0), engine("memory", 0.3)), 0, 0, 120}}},
	{"only the tensor cores are active", nil, []step{{2 * time.Minute, f(compute(0), unit("tensor", 0.3)), 0, 0, 120}}},
	{"only PCIe is active", nil, []step{{2 * time.Minute, f(compute(0), set(collector.PCIeReceiveRate, 3*mib)), 0, 0, 120}}},
	{"only NVLink is active", nil, []step{{2 * time.Minute, f(compute(0), set(collector.NVLinkTransmitRate, 3*mib)), 0, 0, 120}}},
	{"only sensors are read over PCIe", nil, []step{{2 * time.Minute, f(compute(0), set(collector.PCIeReceiveRate, 100_000)), 120, 120, -1}}},
	{"a MIG device", nil, []step{{2 * time.Minute, f(unit("graphics", 0)), 120, 120, -1}, {10 * time.Second, f(unit("graphics", 0.5)), 0, 120, 130}}},
	{"nothing is measured", nil, []step{{5 * time.Minute, nil, -1, -1, -1}}},
	{"all but the compute engine are measured", nil, []step{{5 * time.Minute, f(engine("encoder", 0), set(collector.PCIeReceiveRate, 0)), -1, -1, -1}}},
	{"active without a measurement of the compute engine", nil, []step{{time.Minute, f(engine("encoder", 0.5)), 0, 0, 60}, {time.Minute, f(engine("encoder", 0)), -1, 0, 60}}},
	{"an engine is no longer measured", nil, []step{
		{2 * time.Minute, f(compute(0), engine("encoder", 0)), 120, 120, -1},
		{10 * time.Second, f(compute(0)), -1, 120, -1},
		{10 * time.Second, f(compute(0)), 140, 120, -1}, // the gap is bridged and not counted
		{10 * time.Second, f(compute(0)), 150, 130, -1},
	}},
	{"a short gap", nil, []step{
		{2 * time.Minute, f(compute(0)), 120, 120, -1},
		{50 * time.Second, f(down), -1, 120, -1},
		{10 * time.Second, f(compute(0)), 180, 120, -1},
		{time.Minute, f(compute(0)), 240, 180, -1},
	}},
	{"a long gap ends the idle period", nil, []step{
		{2 * time.Minute, f(compute(0)), 120, 120, -1},
		{80 * time.Second, f(down), -1, 120, -1},
		{10 * time.Second, f(compute(0)), 0, 120, -1},
		{70 * time.Second, f(compute(0)), 70, 190, -1},
	}},
	{"a gap after activity is not idle time", nil, []step{
		{time.Minute, f(compute(1)), 0, 0, 60},
		{30 * time.Second, f(down), -1, 0, 60},
		{70 * time.Second, f(compute(0)), 60, 60, 60},
	}},
}

// TestIdle: a device is idle if all of its engines are measured and inactive.
func TestIdle(t *testing.T) {
	for _, s := range idleCases {
		t.Run(s.name, func(t *testing.T) {
			r := newRig(t, func(r *rig) {
				if s.idle != nil {
					s.idle(&r.settings.Idle)
				}
			})
			r.list(alloc("train", gpu, gpuA))
			// The allocation starts with the first sample of the device.
			r.after(0, device(gpuA, 0, s.steps[0].facts...))
			for i, st := range s.steps {
				r.pass(st.lasts, st.facts...)
				for _, c := range []struct {
					m    *collector.Metric
					want float64
				}{{collector.AllocationIdle, st.idle}, {collector.AllocationIdleTotal, st.total}} {
					if c.want < 0 {
						r.want(c.m)
					} else {
						r.want(c.m, "A train "+number(c.want))
					}
				}
				last := r.series(collector.AllocationLastActivity)
				if st.last >= 0 && (len(last) != 1 || r.value(collector.AllocationLastActivity) != float64(start.Unix())+st.last) || st.last < 0 && last != nil {
					t.Errorf("step %d: last activity %q, want %v after the start", i, last, st.last)
				}
			}
		})
	}
}

// value returns the value of the first series of a family, or -1.
func (r *rig) value(m *collector.Metric) float64 {
	for _, d := range r.snap.Devices {
		for _, x := range d.Readings {
			if x.Metric == m {
				return x.Value
			}
		}
	}
	return -1
}
