package allocation

import (
	"slices"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/podmap"
)

// perHold is how many series a hold has at most, its faults apart.
const perHold = 17

// publish adds the series of the device.
func (j *Judge) publish(st *device, d *collector.Device) {
	st.forget(j.now)
	r := slices.Grow(d.Readings, len(st.holds)*perHold+len(st.ended)+len(st.given)+int(numberOfSuspicions)+1)
	for _, h := range st.holds {
		r = h.publish(r, j.now)
	}
	for _, h := range st.ended {
		r = h.publishJobs(h.publishFaults(r))
	}
	r = st.ledger.publishEnded(r)
	if n, known := j.holders(st); known {
		r = append(r, collector.Reading{Metric: collector.DeviceHolders, Value: float64(n)})
	}
	if !j.pods.AllocatableTime.IsZero() {
		for i := range st.given {
			r = append(r, collector.Reading{Metric: collector.DeviceAllocatable, Labels: st.given[i].labels, Value: boolean(st.given[i].now)})
		}
	}
	if st.looked && j.options.PodDirs != nil && j.pods.State != podmap.StateAbsent {
		for i, n := range st.audit {
			r = append(r, collector.Reading{Metric: collector.UnattributedProcesses, Labels: suspicionLabels[i], Value: float64(n)})
		}
	}
	d.Readings = r
}

// holders returns how many pods hold the device, and false where that is not
// known.
func (j *Judge) holders(st *device) (int, bool) {
	n := len(st.holds) + st.omitted
	return n, n > 0 || st.parts == 0 && j.pods.State == podmap.StateFresh && !j.doubt(st)
}

func (h *hold) publish(r []collector.Reading, now time.Time) []collector.Reading {
	add := func(m *collector.Metric, v float64) {
		r = append(r, collector.Reading{Metric: m, Labels: h.labels, Value: v})
	}
	add(collector.AllocationInfo, 1)
	add(collector.AllocationSeconds, h.seconds(now))
	if h.has[0] {
		add(collector.AllocationUtilization, h.utilization)
	}
	if h.has[1] {
		add(collector.AllocationMemory, h.memory)
	}
	if power, ok := h.power(); ok {
		add(collector.AllocationPower, power)
	}
	if d, ok := h.idleFor(now); ok {
		add(collector.AllocationIdle, d.Seconds())
		if d > 0 {
			add(collector.AllocationIdleSince, stamp(h.from))
		}
	}
	if h.measured && !h.never {
		add(collector.AllocationIdleTotal, h.total)
		if h.priced {
			r = append(r, collector.Reading{Metric: collector.AllocationIdleCost, Labels: h.costs, Value: h.cost})
		}
	}
	if !h.last.IsZero() {
		add(collector.AllocationLastActivity, stamp(h.last))
	}
	return h.publishJobs(h.publishFaults(r))
}

func (h *hold) publishFaults(r []collector.Reading) []collector.Reading {
	for i := range h.faults {
		r = append(r, collector.Reading{Metric: collector.AllocationFault, Labels: h.faults[i].labels, Value: stamp(h.faults[i].at)})
	}
	return r
}

// stamp writes a time as families of time stamps have it.
func stamp(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

func boolean(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
