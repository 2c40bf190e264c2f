package lifecycle

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/judge/allocation"
)

// idleGap is the maximum time of unknown activity within an idle period. Package
// allocation uses the same limit.
const idleGap = time.Minute

// current processes a listed allocation.
func (t *Tracker) current(l *allocation.Record, now time.Time, events []collector.Event) {
	k := keyOf(l)
	a := t.open[k]
	if a == nil {
		if len(t.open) >= MaxTracked {
			t.untracked++
			return
		}
		t.last++
		a = &tracked{number: t.last, record: l, faults: map[string]time.Time{}}
		t.open[k] = a
		t.add(a, Change{Kind: Allocated, Time: l.Since, Observed: !l.After.IsZero()})
	}
	a.record, a.seen, a.until, a.lapsed = l, now, time.Time{}, false
	t.findFaults(a, l, events, now)
	if !a.active && !l.Last.IsZero() {
		a.active = true
		at := l.First
		if at.IsZero() {
			at = l.Last
		}
		t.add(a, Change{Kind: Activity, Time: at, Observed: !l.First.IsZero()})
	}
	t.updateIdle(a, now)
}

// ended processes an allocation that has ended: the tracked one, or an earlier one with
// the same key.
func (t *Tracker) ended(l *allocation.Record, events []collector.Event) {
	a := t.open[keyOf(l)]
	if a == nil || !a.record.Since.Equal(l.Since) {
		return
	}
	t.findFaults(a, l, events, time.Time{})
}

// updateIdle starts and ends idle periods. If the start of the allocation was observed,
// the time before the first activity is not an idle period: the Activity change covers
// it.
func (t *Tracker) updateIdle(a *tracked, now time.Time) {
	l := a.record
	since := l.IdleSince
	if !l.After.IsZero() && l.Last.IsZero() {
		since = time.Time{}
	}
	if !a.idle.IsZero() {
		switch {
		case l.IdleKnown && since.Equal(a.idle):
			a.idleSeen = now
			return
		case l.Last.After(a.idle):
			t.endIdle(a, l.Last, true)
		case !l.IdleKnown && now.Sub(a.idleSeen) <= idleGap:
			return
		default:
			t.endIdle(a, a.idleSeen, false)
		}
	}
	if l.IdleKnown && !since.IsZero() {
		a.idle, a.idleSeen = since, now
		t.add(a, Change{Kind: IdleBegan, Time: since, Observed: true})
	}
}

func (t *Tracker) endIdle(a *tracked, at time.Time, observed bool) {
	if a.idle.IsZero() {
		return
	}
	t.add(a, Change{Kind: IdleEnded, Time: latest(at, a.idle), Observed: observed})
	a.idle = time.Time{}
}

// detailDelay is how long an Xid without a text waits for the report of the
// kernel log, which comes a moment after NVML's.
const detailDelay = 2 * time.Second

// findFaults finds new faults. Before now, one that may still get a text waits;
// without now, none does.
func (t *Tracker) findFaults(a *tracked, l *allocation.Record, events []collector.Event, now time.Time) {
	for _, f := range l.Faults {
		before, known := a.faults[f.Name]
		if known && !f.Time.After(before) || !during(l, f.Time) {
			continue
		}
		if now.Sub(f.Time) < detailDelay && slices.ContainsFunc(events, func(e collector.Event) bool {
			return e.Kind == collector.EventXid && e.Detail == "" && e.Time.Equal(f.Time) && allocation.FaultName(&e) == f.Name && l.Affects(&e)
		}) && !now.IsZero() {
			continue
		}
		a.faults[f.Name] = f.Time
		found := false
		for i := range events {
			e := &events[i]
			if e.Past || allocation.FaultName(e) != f.Name || !l.Affects(e) || e.Time.After(f.Time) || !during(l, e.Time) || known && !e.Time.After(before) {
				continue
			}
			found = found || e.Time.Equal(f.Time)
			t.add(a, Change{Kind: FaultFound, Time: e.Time, Observed: true, Fault: &Fault{
				Name: f.Name, Code: xidOf(f.Name), Sub: e.Sub, Detail: e.Detail, Cause: e.Cause, Action: e.Action,
			}})
		}
		if !found {
			t.add(a, Change{Kind: FaultFound, Time: f.Time, Observed: true, Fault: &Fault{Name: f.Name, Code: xidOf(f.Name)}})
		}
	}
}

// during reports whether an allocation existed at a time, or may have existed.
// An allocation also has the faults of an earlier pod of the same name; these precede
// it.
func during(l *allocation.Record, at time.Time) bool {
	return !at.Before(l.Since) || !l.After.IsZero() && at.After(l.After)
}

// xidOf returns the number of an Xid from a fault's name, else 0.
func xidOf(name string) uint64 {
	digits, ok := strings.CutPrefix(name, "xid_")
	code, err := strconv.ParseUint(digits, 10, 64)
	if !ok || err != nil {
		return 0
	}
	return code
}

func (t *Tracker) release(k key, a *tracked) {
	t.endIdle(a, a.until, !a.lapsed)
	t.add(a, Change{Kind: Released, Time: latest(a.until, a.record.Since), Observed: !a.lapsed})
	delete(t.open, k)
}

func (t *Tracker) add(a *tracked, c Change) {
	c.Allocation, c.State = a.number, a.record
	t.out = append(t.out, c)
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// Kind is the kind of a Change.
type Kind string

// The kinds of changes, in the order in which an allocation can have them.
const (
	Allocated  Kind = "allocated"
	Activity   Kind = "first_activity" // of the pod on the device
	IdleBegan  Kind = "idle_began"
	IdleEnded  Kind = "idle_ended"
	FaultFound Kind = "fault"
	Released   Kind = "released"
)

// Change is one change of an allocation.
type Change struct {
	// Allocation numbers the allocations of a Tracker, from 1.
	Allocation uint64
	Kind       Kind
	// Time is when it happened. For Allocated it is when the allocation was
	// first listed.
	Time time.Time
	// Observed reports whether the change itself was observed, so that Time is
	// exact to one Snapshot. Otherwise it happened at Time or earlier:
	//   - Allocated: the previous list was without the allocation.
	//   - Activity: there was no activity before.
	//   - IdleEnded: activity or the release ended the idle period. Otherwise
	//     it ends at the last time at which activity was known.
	//   - Released: the list was complete at all times up to the release.
	Observed bool
	// State is the state of the allocation when the change was found.
	State *allocation.Record
	// Fault is set for FaultFound only.
	Fault *Fault
}

// Fault is a fault of the device during the allocation.
type Fault struct {
	// Name is the one in accel_allocation_fault_timestamp_seconds: xid_79.
	Name string
	// Code is the number of an Xid, 0 for any other fault.
	Code uint64
	// Sub, Detail, Cause and Action are the fields of collector.Event. They are
	// empty if the event is no longer in the Snapshot.
	Sub, Detail string
	Cause       uint64
	Action      string
}
