package allocation

import (
	"slices"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/podmap"
)

// perAllocation is the largest number of series of an allocation, without its
// faults.
const perAllocation = 12

// publish adds the series of the device.
func (j *Judge) publish(st *device, d *collector.Device) {
	st.forget(j.now)
	r := slices.Grow(d.Readings, len(st.allocations)*perAllocation+len(st.ended)+len(st.offers)+int(numberOfReasons)+1)
	for _, a := range st.allocations {
		r = a.publish(r, j.now)
	}
	for _, a := range st.ended {
		r = a.energy.publish(a.publishFaults(r, j.now), a.labels)
	}
	if n, known := j.holders(st); known {
		r = append(r, collector.Reading{Metric: collector.DeviceHolders, Value: float64(n)})
	}
	if !j.pods.AllocatableTime.IsZero() {
		for i := range st.offers {
			r = append(r, collector.Reading{Metric: collector.DeviceAllocatable, Labels: st.offers[i].labels, Value: boolean(st.offers[i].now)})
		}
	}
	if st.processesKnown && j.options.PodDirs != nil && j.pods.State != podmap.StateAbsent {
		for i, n := range st.unattributedBy {
			r = append(r, collector.Reading{Metric: collector.UnattributedProcesses, Labels: reasonLabels[i], Value: float64(n)})
		}
	}
	d.Readings = r
}

// holders returns the number of pods that the device is allocated to, and
// false if it is unknown.
func (j *Judge) holders(st *device) (int, bool) {
	n := len(st.allocations) + st.omitted
	return n, n > 0 || st.parts == 0 && j.pods.State == podmap.StateFresh && !j.mayBeAllocated(st)
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
		if d > 0 {
			add(collector.AllocationIdleSince, stamp(a.idleness.from, now))
		}
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

// stamp returns a time in seconds since 1970, by the clock of now.
func stamp(t, now time.Time) float64 {
	return float64(collector.OnClock(t, now).UnixMilli()) / 1000
}

func boolean(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// podUse is the use of all devices of a pod.
type podUse struct {
	labels  []string // namespace, pod
	devices int
	// Over the devices whose value is known.
	utilization, sm, memory, memoryTotal, power sum
}

// sum is over the n devices whose value is known.
type sum struct {
	value float64
	n     int
}

func (s *sum) add(q quantity) {
	if q.known {
		s.value += q.value
		s.n++
	}
}

func (u *podUse) take(a *allocation) {
	u.devices++
	u.utilization.add(a.utilization)
	if a.owns() {
		u.sm.add(a.device.values.sm)
	}
	u.memory.add(a.memory)
	u.memoryTotal.add(a.device.values.memoryTotal)
	u.power.add(a.power())
}

// publish appends the known values. A sum over some of the devices is not
// published: it would look like less use.
func (u *podUse) publish(r []collector.Reading) []collector.Reading {
	add := func(m *collector.Metric, v float64, known bool) {
		if known {
			r = append(r, collector.Reading{Metric: m, Labels: u.labels, Value: v})
		}
	}
	add(collector.PodDevices, float64(u.devices), true)
	add(collector.PodUtilization, u.utilization.value/float64(max(u.utilization.n, 1)), u.utilization.n > 0)
	add(collector.PodSMActivity, u.sm.value/float64(max(u.sm.n, 1)), u.sm.n > 0)
	add(collector.PodMemory, u.memory.value, u.memory.n == u.devices)
	add(collector.PodMemoryRatio, u.memory.value/u.memoryTotal.value, u.memory.n == u.devices && u.memoryTotal.n == u.devices && u.memoryTotal.value > 0)
	add(collector.PodPower, u.power.value, u.power.n == u.devices)
	return r
}

// usePods adds up the allocations of the latest Snapshot by pod.
func (j *Judge) usePods() {
	j.uses = j.uses[:0]
	clear(j.useOf)
	for _, st := range j.order {
		for _, a := range st.allocations {
			i, ok := j.useOf[a.pod]
			if !ok {
				i = len(j.uses)
				j.useOf[a.pod] = i
				// The first two of holderLabels.
				j.uses = append(j.uses, podUse{labels: a.labels[:2:2]})
			}
			j.uses[i].take(a)
		}
	}
}
