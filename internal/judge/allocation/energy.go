package allocation

import "github.com/accel-exporter/accel-exporter/collector"

// meter follows the energy counter of a device.
type meter struct {
	known  bool
	joules float64
	sole   *allocation // the only allocation since it was read
}

// chargeEnergy adds the energy since the previous Snapshot to the allocation
// that has had the device alone since then.
func (st *device) chargeEnergy() {
	was, v, a := st.meter, &st.values, st.sole()
	st.meter = meter{known: v.energy.known && st.parent == "", joules: v.energy.value, sole: a}
	if was.known && was.joules == v.energy.value && was.sole != a {
		st.meter.sole = nil // read before a had the device: the next difference is not its own
	}
	if !st.meter.known || a == nil {
		return
	}
	a.totals.metered = true
	if was.known && was.sole == a && v.energy.value > was.joules {
		a.totals.joules += v.energy.value - was.joules
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

// publishEnergy adds the energy that the device used for the allocation.
func (a *allocation) publishEnergy(r []collector.Reading) []collector.Reading {
	if !a.totals.metered {
		return r
	}
	return append(r, collector.Reading{Metric: collector.AllocationEnergy, Labels: a.labels, Value: a.totals.joules})
}
