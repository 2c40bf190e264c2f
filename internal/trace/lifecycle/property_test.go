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

// ledger checks the order of the changes of each allocation.
type ledger struct {
	t    *testing.T
	open map[uint64]*entry
	done map[uint64]bool
}

type entry struct {
	key  string
	idle bool
}

func (g *ledger) take(changes []lifecycle.Change) {
	g.t.Helper()
	for _, c := range changes {
		e := g.open[c.Allocation]
		if c.Kind == lifecycle.Allocated {
			if e != nil || g.done[c.Allocation] {
				g.t.Fatalf("allocation %d starts twice", c.Allocation)
			}
			key := c.State.Pod.Name + " " + c.State.Device
			for _, o := range g.open {
				if o.key == key {
					g.t.Fatalf("%s is allocated twice", key)
				}
			}
			g.open[c.Allocation] = &entry{key: key}
			continue
		}
		if e == nil {
			g.t.Fatalf("%s of allocation %d, which is not open", c.Kind, c.Allocation)
		}
		switch c.Kind {
		case lifecycle.IdleBegan, lifecycle.IdleEnded:
			if began := c.Kind == lifecycle.IdleBegan; began == e.idle {
				g.t.Fatalf("%s of allocation %d is out of order", c.Kind, c.Allocation)
			}
			e.idle = !e.idle
		case lifecycle.Released:
			if e.idle {
				g.t.Fatalf("allocation %d is released while idle", c.Allocation)
			}
			delete(g.open, c.Allocation)
			g.done[c.Allocation] = true
		}
	}
}

// world is a random history of allocations.
type world struct {
	*rand.Rand
	now     time.Time
	current map[string]*allocation.Record
	ended   []allocation.Record
}

func (w *world) step() *allocation.History {
	w.now = w.now.Add(time.Duration(1+w.IntN(40)) * time.Second)
	for pod := range 3 {
		for device := range 2 {
			name := fmt.Sprint(pod, device)
			l := w.current[name]
			switch {
			case l == nil && w.IntN(4) == 0:
				l = &allocation.Record{
					Pod: podmap.Pod{Namespace: "n", Name: fmt.Sprint("p", pod)}, Device: fmt.Sprint("d", device),
					Since: w.now, After: w.now.Add(-time.Second), IdleKnown: true,
				}
				if w.IntN(3) == 0 {
					l.After = time.Time{}
				}
				w.current[name] = l
			case l != nil && w.IntN(6) == 0:
				l.Until = w.now
				w.ended = append(w.ended, *l)
				delete(w.current, name)
			case l != nil:
				w.change(l)
			}
		}
	}
	w.ended = w.ended[max(0, len(w.ended)-20):]
	v := &allocation.History{Time: w.now, Complete: true, Records: append([]allocation.Record(nil), w.ended...)}
	for _, l := range w.current {
		v.Records = append(v.Records, *l)
	}
	return v
}

// change makes a random change to an allocation.
func (w *world) change(l *allocation.Record) {
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

// TestProperty: for any subset of the states of a history, each allocation starts once
// and ends once. It does not end while its state is unknown.
func TestProperty(t *testing.T) {
	for seed := range uint64(60) {
		w := &world{Rand: rand.New(rand.NewPCG(seed, 1)), now: start, current: map[string]*allocation.Record{}}
		tracker := lifecycle.New()
		g := &ledger{t: t, open: map[uint64]*entry{}, done: map[uint64]bool{}}
		for range 200 {
			v := w.step()
			switch w.IntN(8) {
			case 0:
				continue // a skipped state
			case 1:
				v.Complete = false
				for i := 0; i < len(v.Records); i++ { // and some allocations are missing
					if w.IntN(2) == 0 {
						v.Records = append(v.Records[:i:i], v.Records[i+1:]...)
					}
				}
			case 2:
				v.Complete, v.Records = false, nil // the kubelet's list is empty
			}
			g.take(tracker.Update(v, nil))
			if tracker.Open() != len(g.open) {
				t.Fatalf("seed %d: %d allocations are tracked, %d are open", seed, tracker.Open(), len(g.open))
			}
			for _, l := range v.Records {
				if l.Until.IsZero() && !g.has(&l) {
					t.Fatalf("seed %d: the allocation of %s on %s has no change", seed, l.Pod.Name, l.Device)
				}
			}
		}
		g.take(tracker.Update(&allocation.History{Time: w.now.Add(time.Hour)}, nil))
		if before := len(g.open); tracker.Open() != before {
			t.Fatalf("seed %d: an incomplete list ended allocations", seed)
		}
		g.take(tracker.Update(&allocation.History{Time: w.now.Add(2 * time.Hour), Complete: true}, nil))
		g.take(tracker.Update(&allocation.History{Time: w.now.Add(3 * time.Hour), Complete: true}, nil))
		if len(g.open) > 0 || tracker.Open() > 0 {
			t.Fatalf("seed %d: %d allocations do not end", seed, len(g.open))
		}
	}
}

func (g *ledger) has(l *allocation.Record) bool {
	for _, e := range g.open {
		if e.key == l.Pod.Name+" "+l.Device {
			return true
		}
	}
	return false
}

// TestBound: allocations beyond MaxTracked are counted. They are tracked when others
// end.
func TestBound(t *testing.T) {
	tracker := lifecycle.New()
	v := &allocation.History{Time: at(10), Complete: true}
	for i := range lifecycle.MaxTracked + 2 {
		v.Records = append(v.Records, allocated("a", fmt.Sprint("GPU-", i), 10))
	}
	tracker.Update(v, nil)
	if tracker.Open() != lifecycle.MaxTracked || tracker.Untracked() != 2 {
		t.Errorf("%d tracked, %d untracked", tracker.Open(), tracker.Untracked())
	}
	v = &allocation.History{Time: at(20), Complete: true, Records: v.Records[10:]}
	tracker.Update(v, nil)
	v.Time = at(60)
	tracker.Update(v, nil)
	v.Time = at(61)
	tracker.Update(v, nil)
	if tracker.Open() != lifecycle.MaxTracked-8 || tracker.Untracked() != 0 {
		t.Errorf("%d tracked, %d untracked", tracker.Open(), tracker.Untracked())
	}
}
