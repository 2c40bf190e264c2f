package podmap

import (
	"fmt"
	"reflect"
	"strings"
	"time"
)

// note counts the outcomes of one poll.
func (w *Watcher) note(list Outcome, listErr, alsoErr error) {
	s := &w.status
	s.Calls[list]++
	s.Last, s.Reachable = list, list == OutcomeOK
	if list != OutcomeNoSocket {
		w.sawSocket = true
	}
	for _, e := range []struct {
		call string
		err  error
	}{{"List", listErr}, {"GetAllocatableResources", alsoErr}} {
		if e.err != nil {
			s.LastError = clip(fmt.Sprintf("%s of %s: %v", e.call, w.opts.Socket, e.err))
		}
	}
}

// state returns the State, and the reason if it is not fresh.
func (w *Watcher) state(now time.Time) (State, string) {
	l, s := w.ledger, &w.status
	switch {
	case s.Last == "":
		return StateStarting, ""
	case s.Reachable && l.settled:
		return StateFresh, ""
	case s.Reachable:
		return StateUnconfirmed, l.reason
	case s.Last == OutcomeNoSocket && !w.sawSocket:
		return StateAbsent, "no socket at " + w.opts.Socket
	case !l.last.IsZero() && now.Sub(l.last) < expire:
		return StateStale, s.LastError
	}
	return StateUnreachable, s.LastError
}

// publish makes the next Map out of the ledger.
func (w *Watcher) publish(allocatable []Allocatable, allocatableTime time.Time) {
	now := time.Now()
	w.ledger.expireAt(now)
	was := w.latest.Load()
	m := &Map{
		Time: w.ledger.last, Confirmed: w.ledger.confirmed, Pods: w.ledger.pods,
		Allocatable: allocatable, AllocatableTime: allocatableTime,
	}
	var reason string
	m.State, reason = w.state(now)
	m.Allocations, m.Superseded = w.ledger.list()
	w.latest.Store(m)
	w.describe(m, reason)
	if m.State != was.State || !reflect.DeepEqual(m.Allocations, was.Allocations) || !reflect.DeepEqual(m.Superseded, was.Superseded) ||
		!reflect.DeepEqual(m.Allocatable, was.Allocatable) {
		select {
		case w.changed <- struct{}{}:
		default:
		}
	}
}

// describe copies the counts of the Map to the Status.
func (w *Watcher) describe(m *Map, reason string) {
	s := &w.status
	s.State, s.Reason, s.Time, s.Confirmed = m.State, reason, m.Time, m.Confirmed
	s.Pods, s.Allocations = m.Pods, len(m.Allocations)
	s.Kept, s.Contested = 0, 0
	for i := range m.Allocations {
		h := &m.Allocations[i]
		if h.Kept {
			s.Kept++
		}
		if h.Contested {
			s.Contested++
		}
	}
}

// clip bounds an error's text.
func clip(s string) string {
	const most = 500
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
