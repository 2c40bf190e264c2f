package allocation

import "github.com/accel-exporter/accel-exporter/collector"

// meter follows the counter of energy of a device.
type meter struct {
	known  bool
	joules float64
	sole   *hold // who had the device alone when it was read
}

// chargeEnergy adds what the device has used since the Snapshot before to the hold
// that has had it alone from then on.
func (st *device) chargeEnergy() {
	was, v := st.meter, &st.values
	st.meter = meter{known: v.has[4] && st.parent == "", joules: v.energy, sole: st.sole()}
	h := st.meter.sole
	if !st.meter.known || h == nil {
		return
	}
	h.jobs.metered = true
	if was.known && was.sole == h && v.energy > was.joules {
		h.jobs.joules += v.energy - was.joules
	}
}

// sole is the hold of a pod that has the whole device for itself, nil where
// others use it too or may.
func (st *device) sole() *hold {
	if len(st.holds) != 1 || !st.holds[0].alone() || st.strangers > 0 {
		return nil
	}
	return st.holds[0]
}

// publishEnergy adds what the device used for the hold.
func (h *hold) publishEnergy(r []collector.Reading) []collector.Reading {
	if !h.jobs.metered {
		return r
	}
	return append(r, collector.Reading{Metric: collector.AllocationEnergy, Labels: h.labels, Value: h.jobs.joules})
}
