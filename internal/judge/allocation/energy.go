package allocation

import (
	"github.com/accel-exporter/accel-exporter/collector"
)

// chargeEnergy adds the energy since the previous Snapshot to the allocation
// that has had the device alone since then.
func (st *device) chargeEnergy() {
	was, v, a := st.meter, &st.values, st.sole()
	st.meter = meter{known: v.energy.known && st.parent == "", joules: v.energy.value, only: a}
	if was.known && was.joules == v.energy.value && was.only != a {
		st.meter.only = nil // read before a had the device: the next difference is not its own
	}
	if !st.meter.known || a == nil {
		return
	}
	a.energy.known = true
	if was.known && was.only == a && v.energy.value > was.joules {
		a.energy.joules += v.energy.value - was.joules
	}
}

// sole returns the only allocation of the whole device, nil if other pods or
// processes use it too, or may.
func (st *device) sole() *allocation {
	if len(st.allocations) == 1 && st.allocations[0].owns() {
		return st.allocations[0]
	}
	return nil
}

// publish adds the energy that the device used for the allocation.
func (e *energy) publish(r []collector.Reading, labels []string) []collector.Reading {
	if !e.known {
		return r
	}
	return append(r, collector.Reading{Metric: collector.AllocationEnergy, Labels: labels, Value: e.joules})
}
