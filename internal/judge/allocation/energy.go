package allocation

import "github.com/accel-exporter/accel-exporter/collector"

// energy is what a device used while an allocation had it alone. It is
// published until an hour after the end of the allocation.
type energy struct {
	known  bool
	joules float64
}

// inherit moves the energy of an allocation with the same series to this one.
func (e *energy) inherit(o *energy) {
	e.known, e.joules = e.known || o.known, e.joules+o.joules
	*o = energy{}
}

// publish adds the energy that the device used for the allocation.
func (e *energy) publish(r []collector.Reading, labels []string) []collector.Reading {
	if !e.known {
		return r
	}
	return append(r, collector.Reading{Metric: collector.AllocationEnergy, Labels: labels, Value: e.joules})
}

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
	a.energy.known = true
	if was.known && was.sole == a && v.energy.value > was.joules {
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
