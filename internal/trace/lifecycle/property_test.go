package lifecycle_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/accel-exporter/accel-exporter/internal/judge/allocation"
	"github.com/accel-exporter/accel-exporter/internal/trace/lifecycle"
	"github.com/accel-exporter/accel-exporter/podmap"
)

// ledger checks what is told of every hold.
type ledger struct {
	t    *testing.T
	open map[uint64]*entry
	done map[uint64]bool
}

type entry struct {
	key  string
	idle bool
}

func (g *ledger) take(records []lifecycle.Record) {
	g.t.Helper()
	for _, r := range records {
		e := g.open[r.Hold]
		if r.Kind == lifecycle.Held {
			if e != nil || g.done[r.Hold] {
				g.t.Fatalf("hold %d begins twice", r.Hold)
			}
			key := r.Life.Pod.Name + " " + r.Life.Device
			for _, o := range g.open {
				if o.key == key {
					g.t.Fatalf("%s is held twice", key)
				}
			}
			g.open[r.Hold] = &entry{key: key}
			continue
		}
		if e == nil {
			g.t.Fatalf("%s of hold %d, which is not there", r.Kind, r.Hold)
		}
		switch r.Kind {
		case lifecycle.IdleBegan, lifecycle.IdleEnded:
			if began := r.Kind == lifecycle.IdleBegan; began == e.idle {
				g.t.Fatalf("%s of hold %d out of order", r.Kind, r.Hold)
			}
			e.idle = !e.idle
		case lifecycle.Released:
			if e.idle {
				g.t.Fatalf("hold %d is released and still idle", r.Hold)
			}
			delete(g.open, r.Hold)
			g.done[r.Hold] = true
		}
	}
}

// world is what really happens, and what is known of it.
type world struct {
	*rand.Rand
	now   time.Time
	holds map[string]*allocation.Life
	ended []allocation.Life
}

func (w *world) step() *allocation.Lives {
	w.now = w.now.Add(time.Duration(1+w.IntN(40)) * time.Second)
	for pod := range 3 {
		for device := range 2 {
			name := fmt.Sprint(pod, device)
			l := w.holds[name]
			switch {
			case l == nil && w.IntN(4) == 0:
				l = &allocation.Life{
					Pod: podmap.Pod{Namespace: "n", Name: fmt.Sprint("p", pod)}, Device: fmt.Sprint("d", device),
					Since: w.now, After: w.now.Add(-time.Second), IdleKnown: true,
				}
				if w.IntN(3) == 0 {
					l.After = time.Time{}
				}
				w.holds[name] = l
			case l != nil && w.IntN(6) == 0:
				l.Until = w.now
				w.ended = append(w.ended, *l)
				delete(w.holds, name)
			case l != nil:
				w.live(l)
			}
		}
	}
	w.ended = w.ended[max(0, len(w.ended)-20):]
	v := &allocation.Lives{Time: w.now, Complete: true, Holds: append([]allocation.Life(nil), w.ended...)}
	for _, l := range w.holds {
		v.Holds = append(v.Holds, *l)
	}
	return v
}

// live has something happen in a hold.
func (w *world) live(l *allocation.Life) {
	l.IdleKnown = w.IntN(5) > 0
	switch w.IntN(4) {
	case 0:
		if l.Last, l.IdleSince = w.now, (time.Time{}); l.First.IsZero() {
			l.First = w.now
		}
	case 1:
		if l.IdleSince.IsZero() {
			l.IdleSince = w.now.Add(-time.Second)
		}
	case 2:
		l.Faults = append(l.Faults[:len(l.Faults):len(l.Faults)], allocation.Fault{Name: fmt.Sprint("xid_", w.IntN(3)), Time: w.now})
	}
}

// TestProperty: whatever is seen of what happens, every hold begins once and
// ends once, and none ends because nobody could see it.
func TestProperty(t *testing.T) {
	for seed := range uint64(60) {
		w := &world{Rand: rand.New(rand.NewPCG(seed, 1)), now: start, holds: map[string]*allocation.Life{}}
		tracker := lifecycle.New()
		g := &ledger{t: t, open: map[uint64]*entry{}, done: map[uint64]bool{}}
		for range 200 {
			v := w.step()
			switch w.IntN(8) {
			case 0:
				continue // a Snapshot that nobody looked at
			case 1:
				v.Complete = false
				for i := 0; i < len(v.Holds); i++ { // and some are not told
					if w.IntN(2) == 0 {
						v.Holds = append(v.Holds[:i:i], v.Holds[i+1:]...)
					}
				}
			case 2:
				v.Complete, v.Holds = false, nil // the kubelet has forgotten all
			}
			g.take(tracker.Look(v, nil))
			if tracker.Open() != len(g.open) {
				t.Fatalf("seed %d: %d holds are followed, and %d are told of", seed, tracker.Open(), len(g.open))
			}
			for _, l := range v.Holds {
				if l.Until.IsZero() && !g.has(&l) {
					t.Fatalf("seed %d: %s holds %s, and nothing was told", seed, l.Pod.Name, l.Device)
				}
			}
		}
		g.take(tracker.Look(&allocation.Lives{Time: w.now.Add(time.Hour)}, nil))
		if before := len(g.open); tracker.Open() != before {
			t.Fatalf("seed %d: a list that is not complete ended holds", seed)
		}
		g.take(tracker.Look(&allocation.Lives{Time: w.now.Add(2 * time.Hour), Complete: true}, nil))
		g.take(tracker.Look(&allocation.Lives{Time: w.now.Add(3 * time.Hour), Complete: true}, nil))
		if len(g.open) > 0 || tracker.Open() > 0 {
			t.Fatalf("seed %d: %d holds never end", seed, len(g.open))
		}
	}
}

func (g *ledger) has(l *allocation.Life) bool {
	for _, e := range g.open {
		if e.key == l.Pod.Name+" "+l.Device {
			return true
		}
	}
	return false
}

// TestBound: what is beyond the bound is counted, and taken up when there is
// room.
func TestBound(t *testing.T) {
	tracker := lifecycle.New()
	v := &allocation.Lives{Time: at(10), Complete: true}
	for i := range lifecycle.MaxHolds + 2 {
		v.Holds = append(v.Holds, held("a", fmt.Sprint("GPU-", i), 10))
	}
	tracker.Look(v, nil)
	if tracker.Open() != lifecycle.MaxHolds || tracker.Untracked() != 2 {
		t.Errorf("%d are followed and %d are not", tracker.Open(), tracker.Untracked())
	}
	v = &allocation.Lives{Time: at(20), Complete: true, Holds: v.Holds[10:]}
	tracker.Look(v, nil)
	v.Time = at(60)
	tracker.Look(v, nil)
	v.Time = at(61)
	tracker.Look(v, nil)
	if tracker.Open() != lifecycle.MaxHolds-8 || tracker.Untracked() != 0 {
		t.Errorf("%d are followed and %d are not", tracker.Open(), tracker.Untracked())
	}
}
