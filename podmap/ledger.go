package podmap

import (
	"fmt"
	"slices"
	"time"
)

// allocation is one pod on one device id.
type allocation struct {
	key                  allocationKey
	ref                  Ref
	dra                  bool
	claim                string
	containers           []string
	since, after, listed time.Time
	superseded           bool // until it is not listed any more
	admin                bool // every claim for the device has administrative access

	slot  slot
	owner string // ownerName()
}

// ledger maintains the allocations from one answer to the next by the rules of
// the package comment. It takes every time as an argument.
type ledger struct {
	settle      time.Duration
	self        Pod
	adminAccess func(claim, driver, pool, device string, since time.Time) bool // nil knows none

	allocations map[allocationKey]*allocation

	// base are the pods of the latest complete list, made at confirmed, and
	// pods that were listed since.
	base      map[Pod]struct{}
	confirmed time.Time
	last      time.Time // the latest answer
	pods      int       // in it

	// Of the connection: its number, the time of its first answer, the latest
	// time that more pods were listed than ever on it, how many, and whether it has
	// returned a complete list.
	connection uint64
	first      time.Time
	grew       time.Time
	most       int
	settled    bool
	reason     string // why it is not settled
}

func newLedger(settle time.Duration, self Pod) *ledger {
	return &ledger{settle: settle, self: self, allocations: map[allocationKey]*allocation{}}
}

// certainty is what the kubelet reports of its list.
type certainty uint8

const (
	inferred   certainty = iota // nothing: the ledger finds out
	incomplete                  // it waits for pods
	complete
)

// settledOn reports whether a connection has returned a complete list.
func (l *ledger) settledOn(connection uint64) bool { return l.settled && connection == l.connection }

// take records an answer of the kubelet that was received at now on the given
// connection. born is when the kubelet started to listen, or zero if unknown.
func (l *ledger) take(now time.Time, connection uint64, born time.Time, a *answer, reported certainty) {
	if l.last.IsZero() || connection != l.connection {
		l.connection, l.first, l.grew, l.most, l.settled = connection, now, now, 0, false
	}
	switch {
	case l.settled:
	case reported == inferred:
		l.settled, l.reason = l.complete(now, born, a)
	default:
		l.settled, l.reason = reported == complete, "the kubelet waits for its pods from the API server"
	}
	l.enter(now, a)
	l.missing(now)
	l.supersede(now)
	l.last, l.pods = now, len(a.pods)
	if l.settled {
		l.base, l.confirmed, l.reason = a.pods, now, ""
	}
}

// enter adds the listed allocations.
func (l *ledger) enter(now time.Time, a *answer) {
	for key, was := range a.allocations {
		a := l.allocations[key]
		if a == nil {
			a = &allocation{key: key, dra: was.dra, since: now, after: l.confirmed}
			if was.dra {
				a.ref = ParseDRA(key.resource, key.device)
			} else {
				a.ref = ParseID(key.device)
			}
			a.slot = a.newSlot()
			l.allocations[key] = a
		}
		a.containers, a.listed = was.containers, now
		l.choose(a, was.claims)
		a.owner = a.ownerName()
	}
}

// choose finds the claim by which a pod has the device: the first claim in
// order, and a claim with administrative access only if there is no other.
func (l *ledger) choose(a *allocation, claims []string) {
	a.claim, a.admin = claims[0], a.dra && l.adminAccess != nil
	if !a.admin {
		return
	}
	for _, claim := range claims {
		if !l.adminAccess(claim, a.key.resource, a.key.pool, a.key.device, a.since) {
			a.claim, a.admin = claim, false
			return
		}
	}
}

// missing decides on the allocations that are not listed now.
func (l *ledger) missing(now time.Time) {
	others := l.conflicts()
	began := func(a *allocation) (time.Time, bool) { return a.since, a.listed.Equal(now) }
	for key, a := range l.allocations {
		if a.listed.Equal(now) {
			continue
		}
		if l.settled || a.superseded {
			delete(l.allocations, key)
		} else if since, taken := others.latest(a, began); taken && !a.admin && since.After(a.listed) {
			// This one is the older of the two, and only the other is listed.
			delete(l.allocations, key)
		}
	}
}

// supersede marks listed allocations whose device another pod got later: a pod
// that was not in a complete list that already had them. Allocations by DRA
// are not marked: a claim with administrative access may use a device beside
// its owner.
func (l *ledger) supersede(now time.Time) {
	others := l.conflicts()
	before := func(a *allocation) (time.Time, bool) { return a.after, a.listed.Equal(now) }
	for _, a := range l.allocations {
		if after, taken := others.latest(a, before); taken && !a.dra && !after.Before(a.since) {
			a.superseded = true
		}
	}
}

// complete decides whether an answer is complete on a connection that has not
// returned a complete list yet, and returns the reason if not.
func (l *ledger) complete(now, born time.Time, a *answer) (bool, string) {
	_, self := a.pods[l.self]
	if len(l.base) == 0 || now.Sub(l.confirmed) >= expire {
		if born.IsZero() || born.After(now) {
			born = l.first
		}
		switch {
		case l.self != Pod{}:
			return self, "this exporter's own pod is not listed"
		case len(a.pods) == 0:
			return false, "no pod is listed"
		}
		return now.Sub(born) >= l.settle, "the kubelet has just started"
	}
	if len(a.pods) > l.most {
		l.most, l.grew = len(a.pods), now
	}
	for p := range a.pods {
		l.base[p] = struct{}{}
	}
	back := len(a.pods)
	if back == len(l.base) {
		return true, ""
	}
	// This exporter's own pod comes from the API server, so the kubelet reaches it.
	return self && now.Sub(l.grew) >= l.settle,
		fmt.Sprintf("%d of %d pods are not listed again after a restart of the kubelet", len(l.base)-back, len(l.base))
}

// expireAt releases allocations that have not been listed for too long.
func (l *ledger) expireAt(now time.Time) {
	for key, a := range l.allocations {
		if now.Sub(a.listed) >= expire {
			delete(l.allocations, key)
		}
	}
}

// list returns the current and the superseded allocations, in order.
func (l *ledger) list() (current, superseded []Allocation) {
	order := make([]*allocation, 0, len(l.allocations))
	claims := map[string]map[Pod]struct{}{}
	others := l.conflicts()
	valid := func(a *allocation) (time.Time, bool) { return a.since, !a.superseded }
	for _, a := range l.allocations {
		order = append(order, a)
		if a.dra {
			if claims[a.claim] == nil {
				claims[a.claim] = map[Pod]struct{}{}
			}
			claims[a.claim][a.key.pod] = struct{}{}
		}
	}
	slices.SortFunc(order, func(a, b *allocation) int { return a.key.compare(b.key) })
	current = make([]Allocation, 0, len(order))
	for _, a := range order {
		out := Allocation{
			Pod: a.key.pod, Containers: a.containers, Resource: a.key.resource, DeviceID: a.key.device,
			Pool: a.key.pool, Claim: a.claim, Share: a.key.share, Ref: a.ref,
			Since: a.since, After: a.after,
			Shared: a.slot.part != "" || len(claims[a.claim]) > 1,
			Kept:   !a.listed.Equal(l.last),
			Admin:  a.admin,
		}
		if a.superseded {
			superseded = append(superseded, out)
			continue
		}
		_, conflict := others.latest(a, valid)
		out.Contested = conflict && !a.admin
		current = append(current, out)
	}
	return current, superseded
}
