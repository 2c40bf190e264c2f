package allocation

import (
	"slices"
	"strconv"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
)

const (
	// remember is how long a hold that has ended is remembered, with the
	// faults that it met and what its processes did.
	keepEnded = time.Hour
	// maxEnded bounds the holds that have ended, of one device.
	maxEnded = 64
	// maxPending bounds the faults of a device that wait for the list that
	// says who held it.
	maxPending = 64
	// listedWithin is how long after a fault the kubelet may list a pod that had
	// the device already.
	listedWithin = time.Minute
	// maxMarks bounds the faults of one hold that are told apart.
	maxFaults = 16
)

// mark is when a holder last met a fault.
type faultTime struct {
	name   string
	at     time.Time
	labels []string
}

// fault is one that no holder is known for yet.
type fault struct {
	name string
	at   time.Time
}

// faultOf names an event that may cost a pod its work, or returns "".
func faultOf(e *collector.Event) string {
	switch e.Kind {
	case collector.EventXid:
		return "xid_" + strconv.FormatUint(e.Code, 10)
	case collector.EventBusLoss, collector.EventUnavailable, collector.EventPoison, collector.EventPoisonFatal,
		collector.EventECCDoubleBit, collector.EventRetirementError:
		return string(e.Kind)
	}
	return ""
}

// moving are the events after which devices or their holders may be others.
var reshaping = []collector.EventKind{
	collector.EventMIGConfig, collector.EventReconfiguration, collector.EventDriverLoaded,
	collector.EventUnavailable, collector.EventBusLoss, collector.EventXid,
}

// hear takes an event, and reports whether the kubelet may know more since.
func (j *Judge) event(e *collector.Event) bool {
	if e.Past {
		return false // who held the device then is not known
	}
	moves := slices.Contains(reshaping, e.Kind)
	name := faultOf(e)
	if name == "" || len(e.Witnesses) > 0 {
		return moves
	}
	for _, st := range j.affected(e) {
		if st.recordFault(name, e.Time) || len(st.pending) >= maxPending {
			continue
		}
		st.pending = append(st.pending, fault{name, e.Time})
	}
	return moves
}

// harmed returns the devices whose holders an event harms: the partition that
// it is attributed to, else the device and all that it is cut into.
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

// charge notes a fault on those that held the device at the time, and reports
// whether there were any.
func (st *device) recordFault(name string, at time.Time) bool {
	holds := st.allocationsAt(at)
	for _, a := range holds {
		a.note(name, at)
	}
	return len(holds) > 0
}

// holdsAt returns the holds that there were at a time: those that are known to
// have begun by then and not to have ended; where there is none of that kind,
// those that may have begun.
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

// inherit gives a hold the faults that waited for it, and the faults and
// processes of a hold of the same pod that has ended: its series are the same.
func (st *device) inherit(a *allocation) {
	for i := 0; i < len(st.ended); i++ {
		if o := st.ended[i]; o.pod == a.pod && slices.Equal(o.labels, a.labels) {
			for _, m := range o.faults {
				a.note(m.name, m.at)
			}
			o.faults = nil
			a.totals.inherit(&o.totals)
		}
	}
	st.pending = slices.DeleteFunc(st.pending, func(f fault) bool {
		if a.after.IsZero() || !f.at.After(a.after) {
			return false
		}
		a.note(f.name, f.at)
		return true
	})
}

// end remembers a hold that has ended.
func (st *device) end(a *allocation, now time.Time) {
	a.until = now
	if len(st.ended) >= maxEnded {
		st.ended = slices.Delete(st.ended, 0, 1)
	}
	for _, o := range st.ended {
		if o.pod == a.pod && slices.Equal(o.labels, a.labels) {
			for _, m := range o.faults {
				a.note(m.name, m.at)
			}
			o.faults = nil
			a.totals.inherit(&o.totals)
		}
	}
	st.ended = append(st.ended, a)
}

// forget drops what is too old to be of use.
func (st *device) forget(now time.Time) {
	if len(st.ended) > 0 {
		st.ended = slices.DeleteFunc(st.ended, func(a *allocation) bool { return now.Sub(a.until) > keepEnded })
	}
	if len(st.pending) > 0 {
		st.pending = slices.DeleteFunc(st.pending, func(f fault) bool { return now.Sub(f.at) > listedWithin })
	}
}

// Holder names who held a device.
type Holder struct {
	Namespace  string   `json:"namespace"`
	Pod        string   `json:"pod"`
	Containers []string `json:"containers"`
	Resources  []string `json:"resources"`
}

// HoldersAt returns who held a device at a time up to an hour ago, by the
// latest Snapshot: of a device that is cut up, the holders of its parts.
func (j *Judge) HoldersAt(device string, at time.Time) []Holder {
	j.mu.Lock()
	defer j.mu.Unlock()
	var out []Holder
	for _, st := range j.affected(&collector.Event{Device: device}) {
		for _, a := range st.allocationsAt(at) {
			out = append(out, a.holder())
		}
	}
	return out
}

func (a *allocation) holder() Holder {
	return Holder{a.pod.Namespace, a.pod.Name, slices.Clone(a.containers), slices.Clone(a.resources)}
}
