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

// conflicts are the allocations with administrative access left out, by device.
type conflicts map[deviceKey][]*allocation

func (l *ledger) conflicts() conflicts {
	of := conflicts{}
	for _, a := range l.allocations {
		if !a.admin {
			of[a.slot.device] = append(of[a.slot.device], a)
		}
	}
	return of
}

// latest returns the latest time, by pick, of the allocations that conflict with
// a, and whether there are any. pick may leave allocations out.
func (c conflicts) latest(a *allocation, pick func(*allocation) (time.Time, bool)) (latest time.Time, found bool) {
	for _, b := range c[a.slot.device] {
		samePart := a.slot.part == b.slot.part || a.slot.part == "" || b.slot.part == ""
		if b.owner == a.owner || !samePart {
			continue
		}
		if t, ok := pick(b); ok && (!found || t.After(latest)) {
			latest, found = t, true
		}
	}
	return latest, found
}
