package allocation

import "github.com/accel-exporter/accel-exporter/collector"

// meter follows the counter of energy of a device.
type meter struct {
	known  bool
	joules float64
	sole   *allocation // who had the device alone when it was read
}

// chargeEnergy adds what the device has used since the Snapshot before to the hold
// that has had it alone from then on.
func (st *device) chargeEnergy() {
	was, v := st.meter, &st.values
	st.meter = meter{known: v.energy.known && st.parent == "", joules: v.energy.value, sole: st.sole()}
	a := st.meter.sole
	if !st.meter.known || a == nil {
		return
	}
	a.totals.metered = true
	if was.known && was.sole == a && v.energy.value > was.joules {
		a.totals.joules += v.energy.value - was.joules
	}
}

// sole is the hold of a pod that has the whole device for itself, nil where
// others use it too or may.
func (st *device) sole() *allocation {
	if len(st.allocations) != 1 || !st.allocations[0].alone() || st.outsiders > 0 {
		return nil
	}
	return st.allocations[0]
}

// publishEnergy adds what the device used for the hold.
func (a *allocation) publishEnergy(r []collector.Reading) []collector.Reading {
	if !a.totals.metered {
		return r
	}
	return append(r, collector.Reading{Metric: collector.AllocationEnergy, Labels: a.labels, Value: a.totals.joules})
}
