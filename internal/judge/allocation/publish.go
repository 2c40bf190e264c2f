package allocation

import (
	"slices"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/podmap"
)

// publisher adds the series of this package to a Snapshot.
type publisher struct {
	*node
	join    *join
	options *Options
}

// perAllocation is the largest number of series of an allocation, without its
// faults.
const perAllocation = 12

// publish adds the series of the device.
func (p *publisher) publish(st *device, d *collector.Device) {
	st.forget(p.now)
	r := slices.Grow(d.Readings, len(st.allocations)*perAllocation+len(st.ended)+len(st.offers)+int(numberOfReasons)+1)
	for _, a := range st.allocations {
		r = a.publish(r, p.now)
	}
	for _, a := range st.ended {
		r = a.energy.publish(a.publishFaults(r, p.now), a.labels)
	}
	if n, known := p.join.holders(st); known {
		r = append(r, collector.Reading{Metric: collector.DeviceHolders, Value: float64(n)})
	}
	if !p.pods.AllocatableTime.IsZero() {
		for i := range st.offers {
			if st.offers[i].unlisted {
				continue
			}
			r = append(r, collector.Reading{Metric: collector.DeviceAllocatable, Labels: st.offers[i].labels, Value: boolean(st.offers[i].now)})
		}
	}
	if st.processesKnown && p.options.PodDirs != nil && p.pods.State != podmap.StateAbsent {
		for i, n := range st.unattributedBy {
			r = append(r, collector.Reading{Metric: collector.UnattributedProcesses, Labels: reasonLabels[i], Value: float64(n)})
		}
	}
	d.Readings = r
}

func (a *allocation) publish(r []collector.Reading, now time.Time) []collector.Reading {
	add := func(m *collector.Metric, v float64) {
		r = append(r, collector.Reading{Metric: m, Labels: a.labels, Value: v})
	}
	add(collector.AllocationInfo, 1)
	add(collector.AllocationSeconds, age(a.since, now))
	for _, x := range []struct {
		metric *collector.Metric
		quantity
	}{
		{collector.AllocationUtilization, a.utilization},
		{collector.AllocationMemory, a.memory},
		{collector.AllocationPower, a.power()},
	} {
		if x.known {
			add(x.metric, x.value)
		}
	}
	if d, ok := a.idleFor(now); ok {
		add(collector.AllocationIdle, d.Seconds())
	}
	if a.idleness.measured && !a.idleness.exempt {
		add(collector.AllocationIdleTotal, a.idleness.total)
		if a.cost.priced {
			r = append(r, collector.Reading{Metric: collector.AllocationIdleCost, Labels: a.cost.labels, Value: a.cost.total})
		}
	}
	if !a.idleness.last.IsZero() {
		add(collector.AllocationLastActivity, stamp(a.idleness.last, now))
	}
	return a.energy.publish(a.publishFaults(r, now), a.labels)
}

func (a *allocation) publishFaults(r []collector.Reading, now time.Time) []collector.Reading {
	for i := range a.faults {
		f := &a.faults[i]
		r = append(r,
			collector.Reading{Metric: collector.AllocationFault, Labels: f.labels, Value: stamp(f.at, now)},
			collector.Reading{Metric: collector.AllocationFaultAge, Labels: f.labels, Value: age(f.at, now)})
	}
	return r
}
