package trace

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/judge/allocation"
	"github.com/accel-exporter/accel-exporter/podmap"
)

const (
	// unknownGap is the longest time of unknown activity within a stage. Package
	// allocation uses the same limit.
	unknownGap = time.Minute
	// releaseDelay is the time from the end of an allocation to its last span. The
	// kernel log and NVML report one fault up to 10 s apart, and the later report
	// still belongs to the allocation.
	releaseDelay = 15 * time.Second
)

// Tracker tracks allocations. It is not safe for concurrent use.
type Tracker struct {
	node     string
	identify Identifier
	open     map[key]*tracked
	pods     map[podmap.Pod]*podTrace
	out      []Span
}

type key struct {
	pod    podmap.Pod
	device string
}

func keyOf(l *allocation.Record) key { return key{l.Pod, l.Device} }

// tracked is the state of an allocation.
type tracked struct {
	pod      *podTrace
	record   *allocation.Record // in the latest state that had it
	since    time.Time
	observed bool      // the start was observed
	seen     time.Time // time of the latest state that had it
	until    time.Time // its end, zero while it exists
	lapsed   bool      // it was unknown in between whether it exists
	active   time.Time // latest activity
	stage    stage
	faults   faults
}

// stage is the current stage of an allocation.
type stage struct {
	name  string // of its span, "" while the activity is unknown
	since time.Time
	seen  time.Time // time of the latest state in it
}

// NewTracker returns a Tracker without allocations. The name of the node
// identifies pods without a known UID.
func NewTracker(node string, identify Identifier) *Tracker {
	return &Tracker{node: node, identify: identify, open: map[key]*tracked{}, pods: map[podmap.Pod]*podTrace{}}
}

// Update processes the current state and returns the spans that have ended since
// the previous one. events are the events of the same Snapshot; they add details
// to faults.
func (t *Tracker) Update(state *allocation.History, events []collector.Event) []Span {
	t.out = nil
	var current []*allocation.Record
	for i := range state.Records {
		l := &state.Records[i]
		if l.Until.IsZero() {
			current = append(current, l)
		} else if a := t.open[keyOf(l)]; a != nil && a.record.Since.Equal(l.Since) {
			t.findFaults(a, l, events, state.Time)
		}
	}
	ending := t.findMissing(state, current)
	for _, l := range current {
		t.replace(l, ending)
	}
	for _, l := range current {
		t.update(l, state.Time, events)
	}
	for _, k := range t.keys() {
		if a := t.open[k]; !a.until.IsZero() && state.Time.Sub(a.until) >= releaseDelay {
			t.release(k, a)
		}
	}
	for _, p := range t.pods {
		t.settle(p, state.Time, false)
	}
	return t.out
}

// Close returns the spans of all stages. A stage that goes on ends as unobserved.
func (t *Tracker) Close(now time.Time) []Span {
	t.out = nil
	for _, k := range t.keys() {
		if a := t.open[k]; !a.until.IsZero() {
			t.release(k, a)
		} else {
			t.endStage(a, a.stage.seen, false)
		}
	}
	for _, p := range t.pods {
		t.settle(p, now, true)
	}
	return t.out
}

// findMissing marks the end of the allocations that are no longer listed. It
// returns the pods with an allocation that has ended.
func (t *Tracker) findMissing(state *allocation.History, current []*allocation.Record) map[podmap.Pod]bool {
	listed := make(map[key]bool, len(current))
	for _, l := range current {
		listed[keyOf(l)] = true
	}
	ending := map[podmap.Pod]bool{}
	for k, a := range t.open {
		switch {
		case listed[k]:
			continue
		case a.until.IsZero() && (!state.Complete || state.Unresolved[k.pod] || state.Omitted[k.device]):
			a.lapsed = true
			continue
		case a.until.IsZero():
			a.until = state.Time
		}
		ending[k.pod] = true
	}
	return ending
}

// replace releases the earlier allocations of the pod name of a new allocation,
// so that the new pod gets a separate trace. An allocation is new if a complete
// list after the latest state with the earlier one was without it.
func (t *Tracker) replace(l *allocation.Record, ending map[podmap.Pod]bool) {
	a := t.open[keyOf(l)]
	if a != nil {
		if l.Since.Equal(a.record.Since) || !l.After.After(a.seen) {
			return
		}
		a.until = latest(l.After, a.seen)
		t.release(keyOf(l), a)
	}
	if !ending[l.Pod] {
		return
	}
	delete(ending, l.Pod)
	for _, k := range t.keys() {
		if a := t.open[k]; k.pod == l.Pod && !a.until.IsZero() {
			t.release(k, a)
		}
	}
}

// update processes a listed allocation.
func (t *Tracker) update(l *allocation.Record, now time.Time, events []collector.Event) {
	a := t.open[keyOf(l)]
	if a == nil {
		a = &tracked{pod: t.podOf(l, now), since: l.Since, observed: !l.After.IsZero(), faults: faults{latest: map[string]time.Time{}}}
		a.pod.devices = append(a.pod.devices, l.Device)
		t.open[keyOf(l)] = a
		if a.observed {
			a.stage = stage{spanWait, l.Since, now}
		}
	}
	a.record, a.seen, a.until, a.lapsed = l, now, time.Time{}, false
	t.findFaults(a, l, events, now)
	t.followStage(a, now)
}

// followStage ends the stage of an allocation if another one has begun.
func (t *Tracker) followStage(a *tracked, now time.Time) {
	s := &a.stage
	next := a.currentStage()
	a.active = a.record.Last
	switch {
	case next.name == "":
		if s.name != "" && now.Sub(s.seen) > unknownGap {
			t.endStage(a, s.seen, false)
		}
		return
	case next.name != s.name:
		// Without a first activity, part of the wait was not observed.
		t.endStage(a, next.since, s.name != spanWait || !a.record.First.IsZero())
	case s.name == spanIdle && !next.since.Equal(s.since):
		t.endStage(a, s.seen, false) // the time between two idle periods was not observed
	default:
		s.seen = now
		return
	}
	next.seen = now
	a.stage = next
}

// currentStage returns the stage by the latest state, without a name if it is
// unknown. If the start of the allocation was observed, all time before the first
// activity is the wait.
func (a *tracked) currentStage() stage {
	l := a.record
	switch {
	case !l.IdleKnown:
	case l.Last.IsZero() && a.observed:
		return stage{name: spanWait, since: l.Since}
	case !l.IdleSince.IsZero():
		return stage{name: spanIdle, since: l.IdleSince}
	case l.Last.After(a.active):
		since := l.Last
		if a.stage.name == spanWait && !l.First.IsZero() {
			since = l.First
		}
		return stage{name: spanActive, since: since}
	case a.stage.name == spanActive: // a pause shorter than the grace period
		return a.stage
	}
	return stage{}
}

// endStage returns the span of the current stage. observed means that its end was
// observed, and not only its latest time.
func (t *Tracker) endStage(a *tracked, end time.Time, observed bool) {
	s := a.stage
	if s.name == "" {
		return
	}
	a.stage = stage{}
	attrs := append(deviceAttrs(a.record), attribute.Bool("accel.observed", observed))
	t.emit(a.pod, newSpan(s.name, s.since, latest(end, s.since), attrs), a.record.Device, s.since.UnixNano())
}

// release returns the last spans of an allocation.
func (t *Tracker) release(k key, a *tracked) {
	t.endStage(a, a.until, !a.lapsed)
	l, end := a.record, latest(a.until, a.since)
	attrs := deviceAttrs(l)
	attrs.list("accel.allocation.resources", l.Resources)
	if len(l.Containers) > 1 {
		attrs.list("accel.allocation.containers", l.Containers)
	}
	attrs.add(attribute.Bool("accel.allocation.shared", l.Shared))
	attrs.add(attribute.Bool("accel.allocation.start_observed", a.observed))
	attrs.add(attribute.Bool("accel.allocation.end_observed", !a.lapsed))
	attrs.text("accel.health.state", l.Health)
	attrs.text("accel.health.action", l.Action)
	if a.faults.omitted > 0 {
		attrs.add(attribute.Int("accel.faults_omitted", a.faults.omitted))
	}
	span := newSpan(spanDevice, a.since, end, attrs)
	span.Error = a.failure(end)
	t.emit(a.pod, span, l.Device, a.since.UnixNano())
	delete(t.open, k)
	for other := range t.open {
		if other.pod == k.pod {
			return
		}
	}
	t.settle(a.pod, end, true)
	delete(t.pods, k.pod)
}

// keys returns the keys of the tracked allocations, in order.
func (t *Tracker) keys() []key {
	return slices.SortedFunc(maps.Keys(t.open), func(a, b key) int {
		return cmp.Or(cmp.Compare(a.pod.Namespace, b.pod.Namespace), cmp.Compare(a.pod.Name, b.pod.Name), cmp.Compare(a.device, b.device))
	})
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
