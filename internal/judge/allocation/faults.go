package allocation

import (
	"slices"
	"strconv"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
)

const (
	// keepEnded is how long an ended allocation is remembered, with its faults
	// and its energy.
	keepEnded = time.Hour
	// maxEnded limits the ended allocations of one device.
	maxEnded = 64
	// maxPending limits the faults of a device that wait for the next list of
	// allocations.
	maxPending = 64
	// listedWithin is how long after a fault the kubelet may list a pod that
	// already had the device.
	listedWithin = time.Minute
	// maxFaults limits the distinct faults of one allocation.
	maxFaults = 16
)

// FaultName returns the Fault.Name of an event that may cost a pod its work, ""
// for any other event.
func FaultName(e *collector.Event) string {
	switch e.Kind {
	case collector.EventXid:
		return "xid_" + strconv.FormatUint(e.Code, 10)
	case collector.EventBusLoss, collector.EventUnavailable, collector.EventPoison, collector.EventPoisonFatal,
		collector.EventECCDoubleBit, collector.EventRetirementError,
		collector.EventHang, collector.EventHangRecovered, collector.EventReset, collector.EventResetFailed,
		collector.EventWedged, collector.EventECCUncorrected, collector.EventThermalShutdown:
		return string(e.Kind)
	}
	return ""
}

// recordFault adds a fault to the allocations at its time, and reports whether
// there were any.
func (st *device) recordFault(name string, at time.Time) bool {
	allocations := st.allocationsAt(at)
	for _, a := range allocations {
		a.note(name, at)
	}
	return len(allocations) > 0
}

// allocationsAt returns the allocations that are known to have begun by a time and not
// to have ended. An allocation that may have begun gets the fault from st.pending.
func (st *device) allocationsAt(at time.Time) (list []*allocation) {
	for _, a := range slices.Concat(st.ended, st.allocations) {
		if !at.Before(a.since) && (a.until.IsZero() || at.Before(a.until)) {
			list = append(list, a)
		}
	}
	return list
}

func (a *allocation) note(name string, at time.Time) {
	i := slices.IndexFunc(a.faults, func(m faultTime) bool { return m.name == name })
	if i < 0 && len(a.faults) >= maxFaults-1 {
		name = "other"
		i = slices.IndexFunc(a.faults, func(m faultTime) bool { return m.name == name })
	}
	if i < 0 {
		a.faults = append(a.faults, faultTime{name, at, append(slices.Clip(a.labels), name)})
		return
	}
	if at.After(a.faults[i].at) {
		a.faults[i].at = at
	}
}

// inherit gives an allocation the faults that waited for it, and the faults
// and the energy of an ended allocation with the same series.
func (st *device) inherit(a *allocation) {
	st.inheritEnded(a)
	st.pending = slices.DeleteFunc(st.pending, func(f Fault) bool {
		if a.after.IsZero() || !f.Time.After(a.after) {
			return false
		}
		a.note(f.Name, f.Time)
		return true
	})
}

// inheritEnded moves the faults and the energy of the ended allocations with the
// same series to a.
func (st *device) inheritEnded(a *allocation) {
	for _, o := range st.ended {
		if o.pod == a.pod && slices.Equal(o.labels, a.labels) {
			for _, m := range o.faults {
				a.note(m.name, m.at)
			}
			o.faults = nil
			a.energy.inherit(&o.energy)
		}
	}
}

// end remembers an ended allocation.
func (st *device) end(a *allocation, now time.Time) {
	a.until = now
	if len(st.ended) >= maxEnded {
		st.ended = slices.Delete(st.ended, 0, 1)
	}
	st.inheritEnded(a)
	st.ended = append(st.ended, a)
}

// forget drops ended allocations and faults that are too old.
func (st *device) forget(now time.Time) {
	if len(st.ended) > 0 {
		st.ended = slices.DeleteFunc(st.ended, func(a *allocation) bool { return now.Sub(a.until) > keepEnded })
	}
	if len(st.pending) > 0 {
		st.pending = slices.DeleteFunc(st.pending, func(f Fault) bool { return now.Sub(f.Time) > listedWithin })
	}
}
