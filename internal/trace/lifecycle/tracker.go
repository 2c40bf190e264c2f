package lifecycle

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/judge/allocation"
	"github.com/accel-exporter/accel-exporter/podmap"
)

const (
	// linger is how long a hold that is over may still be charged with a fault:
	// the kernel log and NVML tell of one up to ten seconds apart.
	linger = 15 * time.Second
	// bridge is how long it may be unknown whether a hold is idle without
	// ending the stretch, as package allocation has it.
	bridge = time.Minute
	// MaxHolds bounds the holds that are followed at once.
	MaxHolds = 4096
)

// Tracker follows holds. It is for one goroutine.
type Tracker struct {
	open      map[key]*hold
	ending    map[podmap.Pod]bool // that have holds which are over
	last      uint64              // number of the latest hold
	untracked int
	out       []Record
}

type key struct {
	pod    podmap.Pod
	device string
}

// hold is one that is followed.
type hold struct {
	n        uint64
	life     *allocation.Life // of the latest look that had it
	seen     time.Time        // of that look
	until    time.Time        // over since, zero while it lasts
	lapsed   bool             // a look between did not know whether it is there
	active   bool
	idle     time.Time // begin of the stretch, zero while there is none
	idleSeen time.Time
	faults   map[string]time.Time // the latest by name
}

// New returns a Tracker of no hold.
func New() *Tracker { return &Tracker{open: map[key]*hold{}, ending: map[podmap.Pod]bool{}} }

// Open returns how many holds are followed.
func (t *Tracker) Open() int { return len(t.open) }

// Untracked returns how many holds of the latest look were beyond MaxHolds.
func (t *Tracker) Untracked() int { return t.untracked }

// Look takes what is known now and returns what has happened since the look
// before. Events are the latest of the Snapshot; they say more of faults.
func (t *Tracker) Look(v *allocation.Lives, events []collector.Event) []Record {
	t.out, t.untracked = nil, 0
	for i := range v.Holds {
		if l := &v.Holds[i]; !l.Until.IsZero() {
			t.over(l, events)
		}
	}
	t.missed(v)
	for i := range v.Holds {
		if l := &v.Holds[i]; l.Until.IsZero() {
			t.succeed(l)
		}
	}
	for i := range v.Holds {
		if l := &v.Holds[i]; l.Until.IsZero() {
			t.lasts(l, v.Time, events)
		}
	}
	for _, k := range t.keys() {
		if h := t.open[k]; !h.until.IsZero() && v.Time.Sub(h.until) >= linger {
			t.release(k, h)
		}
	}
	return t.out
}

// Close returns what is left to tell of holds that are over, and ends the
// stretches of idleness. Holds that last are not released.
func (t *Tracker) Close() []Record {
	t.out = nil
	for _, k := range t.keys() {
		if h := t.open[k]; !h.until.IsZero() {
			t.release(k, h)
		} else {
			t.endIdle(h, h.idleSeen, false)
		}
	}
	return t.out
}

// missed finds the holds that are not there any more.
func (t *Tracker) missed(v *allocation.Lives) {
	there := make(map[key]bool, len(v.Holds))
	for i := range v.Holds {
		if l := &v.Holds[i]; l.Until.IsZero() {
			there[keyOf(l)] = true
		}
	}
	clear(t.ending)
	for k, h := range t.open {
		if there[k] {
			continue
		}
		if h.until.IsZero() && (!v.Complete || v.Lost[k.pod] || v.Omitted[k.device]) {
			h.lapsed = true
			continue
		}
		if h.until.IsZero() {
			h.until = v.Time
		}
		t.ending[k.pod] = true
	}
}

// succeed releases what the pod of a new hold held before: that was another
// pod of its name, or another allocation.
func (t *Tracker) succeed(l *allocation.Life) {
	k := keyOf(l)
	h := t.open[k]
	if h != nil && !replaced(h, l) {
		return
	}
	if h != nil {
		h.until = latest(l.After, h.seen)
		t.release(k, h)
	}
	if !t.ending[l.Pod] {
		return
	}
	delete(t.ending, l.Pod)
	for _, k := range t.keys() {
		if h := t.open[k]; k.pod == l.Pod && !h.until.IsZero() {
			t.release(k, h)
		}
	}
}

// keys are those of the holds that are followed, in order.
func (t *Tracker) keys() []key {
	return slices.SortedFunc(maps.Keys(t.open), func(a, b key) int {
		return cmp.Or(cmp.Compare(a.pod.Namespace, b.pod.Namespace), cmp.Compare(a.pod.Name, b.pod.Name), cmp.Compare(a.device, b.device))
	})
}

func keyOf(l *allocation.Life) key { return key{l.Pod, l.Device} }

// over takes a hold that has ended: the one that is followed, or one before.
func (t *Tracker) over(l *allocation.Life, events []collector.Event) {
	h := t.open[keyOf(l)]
	if h == nil || !h.life.Since.Equal(l.Since) {
		return
	}
	t.charge(h, l, events)
}

// lasts takes a hold that is there.
func (t *Tracker) lasts(l *allocation.Life, now time.Time, events []collector.Event) {
	k := keyOf(l)
	h := t.open[k]
	if h == nil {
		if len(t.open) >= MaxHolds {
			t.untracked++
			return
		}
		t.last++
		h = &hold{n: t.last, life: l, faults: map[string]time.Time{}}
		t.open[k] = h
		t.tell(h, Record{Kind: Held, Time: l.Since, Observed: !l.After.IsZero()})
	}
	h.life, h.seen, h.until, h.lapsed = l, now, time.Time{}, false
	t.charge(h, l, events)
	if !h.active && !l.Last.IsZero() {
		h.active = true
		at := l.First
		if at.IsZero() {
			at = l.Last
		}
		t.tell(h, Record{Kind: Activity, Time: at, Observed: !l.First.IsZero()})
	}
	t.idleness(h, now)
}

// replaced reports whether l is another hold than h, of the same pod or of one
// of its name: a complete list that came after h was seen was without it.
func replaced(h *hold, l *allocation.Life) bool {
	return !l.Since.Equal(h.life.Since) && l.After.After(h.seen)
}

// idleness begins and ends stretches. The time up to the first activity of a
// hold whose begin was seen is none: it is told by that activity.
func (t *Tracker) idleness(h *hold, now time.Time) {
	l := h.life
	since := l.IdleSince
	if !l.After.IsZero() && l.Last.IsZero() {
		since = time.Time{}
	}
	if !h.idle.IsZero() {
		switch {
		case l.IdleKnown && since.Equal(h.idle):
			h.idleSeen = now
			return
		case l.Last.After(h.idle):
			t.endIdle(h, l.Last, true)
		case !l.IdleKnown && now.Sub(h.idleSeen) <= bridge:
			return
		default:
			t.endIdle(h, h.idleSeen, false)
		}
	}
	if l.IdleKnown && !since.IsZero() {
		h.idle, h.idleSeen = since, now
		t.tell(h, Record{Kind: IdleBegan, Time: since, Observed: true})
	}
}

func (t *Tracker) endIdle(h *hold, at time.Time, observed bool) {
	if h.idle.IsZero() {
		return
	}
	t.tell(h, Record{Kind: IdleEnded, Time: latest(at, h.idle), Observed: observed})
	h.idle = time.Time{}
}

// charge tells the faults that are new.
func (t *Tracker) charge(h *hold, l *allocation.Life, events []collector.Event) {
	for _, f := range l.Faults {
		before, known := h.faults[f.Name]
		if known && !f.Time.After(before) || !during(l, f.Time) {
			continue
		}
		h.faults[f.Name] = f.Time
		found := false
		for i := range events {
			e := &events[i]
			if e.Past || allocation.FaultName(e) != f.Name || !l.Harms(e) || e.Time.After(f.Time) || !during(l, e.Time) || known && !e.Time.After(before) {
				continue
			}
			found = found || e.Time.Equal(f.Time)
			t.tell(h, Record{Kind: FaultFound, Time: e.Time, Observed: true, Fault: &Fault{
				Name: f.Name, Code: codeOf(f.Name), Sub: e.Sub, Detail: e.Detail, Cause: e.Cause, Action: e.Action,
			}})
		}
		if !found {
			t.tell(h, Record{Kind: FaultFound, Time: f.Time, Observed: true, Fault: &Fault{Name: f.Name, Code: codeOf(f.Name)}})
		}
	}
}

// during reports whether a hold was there at a time, or may have been. It has
// the faults of one before it, too, where that was of a pod of the same name.
func during(l *allocation.Life, at time.Time) bool {
	return !at.Before(l.Since) || !l.After.IsZero() && at.After(l.After)
}

// codeOf returns the number of an Xid that Fault.Name names, else 0.
func codeOf(name string) uint64 {
	digits, ok := strings.CutPrefix(name, "xid_")
	code, err := strconv.ParseUint(digits, 10, 64)
	if !ok || err != nil {
		return 0
	}
	return code
}

func (t *Tracker) release(k key, h *hold) {
	t.endIdle(h, h.until, !h.lapsed)
	t.tell(h, Record{Kind: Released, Time: latest(h.until, h.life.Since), Observed: !h.lapsed})
	delete(t.open, k)
}

func (t *Tracker) tell(h *hold, r Record) {
	r.Hold, r.Life = h.n, h.life
	t.out = append(t.out, r)
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
