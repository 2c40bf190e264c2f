package podmap

import "time"

// slot is the part of a device that an allocation takes. Allocations of
// different owners on one device conflict if they have the same part, or if
// one pod has the whole device.
type slot struct {
	device deviceKey
	part   string // number of the replica, id of the share; empty is the whole
}

// deviceKey identifies a device by the kubelet's id. The resource name is left
// out if the id means the same under every name.
type deviceKey struct {
	resource, pool string
	ref            Ref
}

// newSlot returns the part of the device that the allocation takes.
func (a *allocation) newSlot() slot {
	s := slot{deviceKey{ref: a.ref.device()}, a.ref.Replica}
	switch {
	case a.dra:
		s.device.resource, s.device.pool = a.key.resource, a.key.pool
		if a.key.share != "" {
			s.part = a.key.share
		}
	case !a.ref.global():
		s.device.resource = a.key.resource
	}
	return s
}

// ownerName returns the owner, which may have the same part twice: a pod, or a
// claim, which several pods may use.
func (a *allocation) ownerName() string {
	if a.dra {
		return "claim " + a.claim
	}
	return "pod " + a.key.pod.Namespace + "/" + a.key.pod.Name
}

// latest has the latest time of each owner. An unshared device rarely has two.
type latest map[string]time.Time

// not returns the latest time of an owner other than the one given.
func (l latest) not(owner string) (t time.Time, any bool) {
	for o, of := range l {
		if o != owner && (!any || of.After(t)) {
			t, any = of, true
		}
	}
	return t, any
}

// conflicts returns, for an allocation, the latest time of the allocations of
// other owners that conflict with it.
type conflicts struct {
	slots   map[slot]latest
	devices map[deviceKey]latest // of every part
}

func (r *conflicts) add(a *allocation, t time.Time) {
	add(r.slots, a.slot, a.owner, t)
	add(r.devices, a.slot.device, a.owner, t)
}

func add[K comparable](m map[K]latest, k K, owner string, t time.Time) {
	if m[k] == nil {
		m[k] = latest{}
	}
	if was, ok := m[k][owner]; !ok || t.After(was) {
		m[k][owner] = t
	}
}

// of returns the latest time of the allocations that conflict with a, and
// whether there are any.
func (r *conflicts) of(a *allocation) (time.Time, bool) {
	if a.slot.part == "" {
		return r.devices[a.slot.device].not(a.owner)
	}
	same, any := r.slots[a.slot].not(a.owner)
	whole, also := r.slots[slot{device: a.slot.device}].not(a.owner)
	if also && (!any || whole.After(same)) {
		same = whole
	}
	return same, any || also
}
