package lifecycle

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/judge/allocation"
	"github.com/accel-exporter/accel-exporter/podmap"
)

// releaseDelay is the time from the end of an allocation to its Released
// change. The kernel log and NVML report one fault up to 10 s apart, and the
// later report still belongs to the allocation.
const releaseDelay = 15 * time.Second

// MaxTracked is the maximum number of tracked allocations.
const MaxTracked = 4096

// Tracker tracks allocations. It is not safe for concurrent use.
type Tracker struct {
	open      map[key]*tracked
	ending    map[podmap.Pod]bool // pods with an allocation that waits for its Released change
	last      uint64              // number of the latest allocation
	untracked int
	out       []Change
}

type key struct {
	pod    podmap.Pod
	device string
}

// tracked is the state of an allocation.
type tracked struct {
	number   uint64
	record   *allocation.Record // in the latest state that had it
	seen     time.Time          // time of that state
	until    time.Time          // its end, zero while it exists
	lapsed   bool               // it was unknown in between whether it exists
	active   bool
	idle     time.Time // start of the idle period, zero without one
	idleSeen time.Time
	faults   map[string]time.Time // the latest by name
}

// New returns a Tracker without allocations.
func New() *Tracker { return &Tracker{open: map[key]*tracked{}, ending: map[podmap.Pod]bool{}} }

// Open returns the number of tracked allocations.
func (t *Tracker) Open() int { return len(t.open) }

// Untracked returns the number of allocations of the latest state beyond MaxTracked.
func (t *Tracker) Untracked() int { return t.untracked }

// Update processes the current state and returns the changes since the previous one.
// events are the events of the same Snapshot; they add details to faults.
func (t *Tracker) Update(state *allocation.History, events []collector.Event) []Change {
	t.out, t.untracked = nil, 0
	for i := range state.Records {
		if l := &state.Records[i]; !l.Until.IsZero() {
			t.ended(l, events)
		}
	}
	t.findMissing(state)
	for i := range state.Records {
		if l := &state.Records[i]; l.Until.IsZero() {
			t.replace(l)
		}
	}
	for i := range state.Records {
		if l := &state.Records[i]; l.Until.IsZero() {
			t.current(l, state.Time, events)
		}
	}
	for _, k := range t.keys() {
		if a := t.open[k]; !a.until.IsZero() && state.Time.Sub(a.until) >= releaseDelay {
			t.release(k, a)
		}
	}
	return t.out
}

// Close returns the Released changes of allocations that have ended, and ends all idle
// periods. It does not release current allocations.
func (t *Tracker) Close() []Change {
	t.out = nil
	for _, k := range t.keys() {
		if a := t.open[k]; !a.until.IsZero() {
			t.release(k, a)
		} else {
			t.endIdle(a, a.idleSeen, false)
		}
	}
	return t.out
}

// findMissing marks the end of the allocations that are no longer listed.
func (t *Tracker) findMissing(state *allocation.History) {
	listed := make(map[key]bool, len(state.Records))
	for i := range state.Records {
		if l := &state.Records[i]; l.Until.IsZero() {
			listed[keyOf(l)] = true
		}
	}
	clear(t.ending)
	for k, a := range t.open {
		if listed[k] {
			continue
		}
		if a.until.IsZero() && (!state.Complete || state.Unresolved[k.pod] || state.Omitted[k.device]) {
			a.lapsed = true
			continue
		}
		if a.until.IsZero() {
			a.until = state.Time
		}
		t.ending[k.pod] = true
	}
}

// replace releases the earlier allocations of the pod name of a new allocation. They
// belong to another pod of the same name, or to the same pod.
func (t *Tracker) replace(l *allocation.Record) {
	k := keyOf(l)
	a := t.open[k]
	if a != nil && !isSuccessor(l, a) {
		return
	}
	if a != nil {
		a.until = latest(l.After, a.seen)
		t.release(k, a)
	}
	if !t.ending[l.Pod] {
		return
	}
	delete(t.ending, l.Pod)
	for _, k := range t.keys() {
		if a := t.open[k]; k.pod == l.Pod && !a.until.IsZero() {
			t.release(k, a)
		}
	}
}

// isSuccessor reports whether l is a later allocation than a, of the same pod name and
// device: a complete list after the latest state with a was without it.
func isSuccessor(l *allocation.Record, a *tracked) bool {
	return !l.Since.Equal(a.record.Since) && l.After.After(a.seen)
}

// keys returns the keys of the tracked allocations, in order.
func (t *Tracker) keys() []key {
	return slices.SortedFunc(maps.Keys(t.open), func(a, b key) int {
		return cmp.Or(cmp.Compare(a.pod.Namespace, b.pod.Namespace), cmp.Compare(a.pod.Name, b.pod.Name), cmp.Compare(a.device, b.device))
	})
}

func keyOf(l *allocation.Record) key { return key{l.Pod, l.Device} }
