package podmap

import "time"

// slot is what one hold takes of a device. Holds of different owners on one
// device are at odds where they have the same part, or where either has the
// whole.
type slot struct {
	device deviceKey
	part   string // number of the replica, id of the share; empty is the whole
}

// deviceKey identifies a device by what the kubelet calls it. An id that means
// the same under every resource name goes without the name.
type deviceKey struct {
	resource, pool string
	ref            Ref
}

// slotOf returns what the hold takes.
func (h *hold) slotOf() slot {
	s := slot{deviceKey{ref: h.ref.device()}, h.ref.Replica}
	switch {
	case h.dra:
		s.device.resource, s.device.pool = h.key.resource, h.key.pool
		if h.key.share != "" {
			s.part = h.key.share
		}
	case !h.ref.global():
		s.device.resource = h.key.resource
	}
	return s
}

// owner is who may hold the same thing twice: a pod, or a claim, which several
// pods may use.
func (h *hold) owner() string {
	if h.dra {
		return "claim " + h.claim
	}
	return "pod " + h.key.pod.Namespace + "/" + h.key.pod.Name
}

// latest remembers the latest of some times, and the latest of any other
// owner.
type latest struct {
	owner        string
	time, second time.Time
	any, rival   bool
}

func (l *latest) add(owner string, t time.Time) {
	switch {
	case !l.any:
		l.owner, l.time, l.any = owner, t, true
	case owner == l.owner:
		if t.After(l.time) {
			l.time = t
		}
	case t.After(l.time):
		l.owner, l.time, l.second = owner, t, l.time
		l.rival = true
	case !l.rival || t.After(l.second):
		l.second, l.rival = t, true
	}
}

// not returns the latest time of an owner other than the one given.
func (l *latest) not(owner string) (time.Time, bool) {
	switch {
	case l == nil || !l.any:
		return time.Time{}, false
	case l.owner != owner:
		return l.time, true
	}
	return l.second, l.rival
}

// rivals answers, for a hold, what the latest time is that was given for those
// of other owners that are at odds with it.
type rivals struct {
	slots   map[slot]*latest
	devices map[deviceKey]*latest // of every part
}

func newRivals() *rivals {
	return &rivals{map[slot]*latest{}, map[deviceKey]*latest{}}
}

func (r *rivals) add(h *hold, t time.Time) {
	at(r.slots, h.slot).add(h.owned, t)
	at(r.devices, h.slot.device).add(h.owned, t)
}

func at[K comparable](m map[K]*latest, k K) *latest {
	l := m[k]
	if l == nil {
		l = &latest{}
		m[k] = l
	}
	return l
}

// of returns the latest time of h's rivals, and whether h has any.
func (r *rivals) of(h *hold) (time.Time, bool) {
	if h.slot.part == "" {
		return r.devices[h.slot.device].not(h.owned)
	}
	same, any := r.slots[h.slot].not(h.owned)
	whole, also := r.slots[slot{device: h.slot.device}].not(h.owned)
	if also && (!any || whole.After(same)) {
		same = whole
	}
	return same, any || also
}
