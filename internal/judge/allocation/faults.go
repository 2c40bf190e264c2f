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

// faultTime is the latest time of a fault during an allocation.
type faultTime struct {
	name   string
	at     time.Time
	labels []string
}

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

// reshaping are the events after which devices or their allocations may
// change.
var reshaping = []collector.EventKind{
	collector.EventMIGConfig, collector.EventReconfiguration, collector.EventDriverLoaded,
	collector.EventUnavailable, collector.EventBusLoss, collector.EventXid,
}

// event takes an event, and reports whether the kubelet may have new
// information since.
func (j *Judge) event(e *collector.Event) bool {
	if e.Past {
		return false // the allocations of that time are unknown
	}
	moves := slices.Contains(reshaping, e.Kind)
	name := FaultName(e)
	if name == "" || len(e.Witnesses) > 0 {
		return moves
	}
	for _, st := range j.affected(e) {
		if st.recordFault(name, e.Time) || len(st.pending) >= maxPending {
			continue
		}
		st.pending = append(st.pending, Fault{name, e.Time})
	}
	return moves
}

// affected returns the devices whose allocations an event affects: the
// partition that it is attributed to, else the device and all its partitions.
func (j *Judge) affected(e *collector.Event) []*device {
	if st := j.devices[e.Partition]; e.Partition != "" && st != nil {
		return []*device{st}
	}
	var out []*device
	for _, st := range j.order {
		if st.id == e.Device || st.parent == e.Device && st.parent != "" {
			out = append(out, st)
		}
	}
	return out
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

// allocationsAt returns the allocations at a time: those that are known to
// have begun by then and not to have ended; without any of these, those that
// may have begun.
func (st *device) allocationsAt(at time.Time) []*allocation {
	var sure, perhaps []*allocation
	for _, a := range slices.Concat(st.ended, st.allocations) {
		switch {
		case !a.until.IsZero() && !at.Before(a.until):
		case !at.Before(a.since):
			sure = append(sure, a)
		case !a.after.IsZero() && at.After(a.after):
			perhaps = append(perhaps, a)
		}
	}
	if len(sure) > 0 {
		return sure
	}
	return perhaps
}

func (a *allocation) note(name string, at time.Time) {
	i := slices.IndexFunc(a.faults, func(m faultTime) bool { return m.name == name })
	if i < 0 && len(a.faults) >= maxFaults-1 {
		name = "other"
		i = slices.IndexFunc(a.faults, func(m faultTime) bool { return m.name == name })
	}
	if i < 0 {
		a.faults = append(a.faults, faultTime{name, at, append(a.labels[:len(a.labels):len(a.labels)], name)})
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

// forget drops what is too old.
func (st *device) forget(now time.Time) {
	if len(st.ended) > 0 {
		st.ended = slices.DeleteFunc(st.ended, func(a *allocation) bool { return now.Sub(a.until) > keepEnded })
	}
	if len(st.pending) > 0 {
		st.pending = slices.DeleteFunc(st.pending, func(f Fault) bool { return now.Sub(f.Time) > listedWithin })
	}
}

// Holder names a pod that a device is or was allocated to.
type Holder struct {
	Namespace  string   `json:"namespace"`
	Pod        string   `json:"pod"`
	Containers []string `json:"containers"`
	Resources  []string `json:"resources"`
}

func (a *allocation) holder() Holder {
	return Holder{a.pod.Namespace, a.pod.Name, slices.Clone(a.containers), slices.Clone(a.resources)}
}
