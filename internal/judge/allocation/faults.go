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
	remember = time.Hour
	// maxEnded bounds the holds that have ended, of one device.
	maxEnded = 64
	// maxPending bounds the faults of a device that wait for the list that
	// says who held it.
	maxPending = 64
	// listedWithin is how long after a fault the kubelet may list a pod that had
	// the device already.
	listedWithin = time.Minute
	// maxMarks bounds the faults of one hold that are told apart.
	maxMarks = 16
)

// mark is when a holder last met a fault.
type mark struct {
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
var moving = []collector.EventKind{
	collector.EventMIGConfig, collector.EventReconfiguration, collector.EventDriverLoaded,
	collector.EventUnavailable, collector.EventBusLoss, collector.EventXid,
}

// hear takes an event, and reports whether the kubelet may know more since.
func (j *Judge) hear(e *collector.Event) bool {
	if e.Past {
		return false // who held the device then is not known
	}
	moves := slices.Contains(moving, e.Kind)
	name := faultOf(e)
	if name == "" || len(e.Witnesses) > 0 {
		return moves
	}
	for _, st := range j.harmed(e) {
		if st.charge(name, e.Time) || len(st.pending) >= maxPending {
			continue
		}
		st.pending = append(st.pending, fault{name, e.Time})
	}
	return moves
}

// harmed returns the devices whose holders an event harms: the partition that
// it is attributed to, else the device and all that it is cut into.
func (j *Judge) harmed(e *collector.Event) []*device {
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
func (st *device) charge(name string, at time.Time) bool {
	holds := st.holdsAt(at)
	for _, h := range holds {
		h.note(name, at)
	}
	return len(holds) > 0
}

// holdsAt returns the holds that there were at a time: those that are known to
// have begun by then and not to have ended; where there is none of that kind,
// those that may have begun.
func (st *device) holdsAt(at time.Time) []*hold {
	var sure, perhaps []*hold
	for _, h := range slices.Concat(st.ended, st.holds) {
		switch {
		case !h.until.IsZero() && !at.Before(h.until):
		case !at.Before(h.since):
			sure = append(sure, h)
		case !h.after.IsZero() && at.After(h.after):
			perhaps = append(perhaps, h)
		}
	}
	if len(sure) > 0 {
		return sure
	}
	return perhaps
}

func (h *hold) note(name string, at time.Time) {
	i := slices.IndexFunc(h.faults, func(m mark) bool { return m.name == name })
	if i < 0 && len(h.faults) >= maxMarks-1 {
		name = "other"
		i = slices.IndexFunc(h.faults, func(m mark) bool { return m.name == name })
	}
	if i < 0 {
		h.faults = append(h.faults, mark{name, at, append(h.labels[:len(h.labels):len(h.labels)], name)})
		return
	}
	if at.After(h.faults[i].at) {
		h.faults[i].at = at
	}
}

// inherit gives a hold the faults that waited for it, and the faults and
// processes of a hold of the same pod that has ended: its series are the same.
func (st *device) inherit(h *hold) {
	for i := 0; i < len(st.ended); i++ {
		if o := st.ended[i]; o.pod == h.pod && slices.Equal(o.labels, h.labels) {
			for _, m := range o.faults {
				h.note(m.name, m.at)
			}
			o.faults = nil
			h.jobs.inherit(&o.jobs)
		}
	}
	st.pending = slices.DeleteFunc(st.pending, func(f fault) bool {
		if h.after.IsZero() || !f.at.After(h.after) {
			return false
		}
		h.note(f.name, f.at)
		return true
	})
}

// end remembers a hold that has ended.
func (st *device) end(h *hold, now time.Time) {
	h.until = now
	if len(st.ended) >= maxEnded {
		st.ended = slices.Delete(st.ended, 0, 1)
	}
	for _, o := range st.ended {
		if o.pod == h.pod && slices.Equal(o.labels, h.labels) {
			for _, m := range o.faults {
				h.note(m.name, m.at)
			}
			o.faults = nil
			h.jobs.inherit(&o.jobs)
		}
	}
	st.ended = append(st.ended, h)
}

// forget drops what is too old to be of use.
func (st *device) forget(now time.Time) {
	if len(st.ended) > 0 {
		st.ended = slices.DeleteFunc(st.ended, func(h *hold) bool { return now.Sub(h.until) > remember })
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
	for _, st := range j.harmed(&collector.Event{Device: device}) {
		for _, h := range st.holdsAt(at) {
			out = append(out, h.holder())
		}
	}
	return out
}

func (h *hold) holder() Holder {
	return Holder{h.pod.Namespace, h.pod.Name, slices.Clone(h.containers), slices.Clone(h.resources)}
}
