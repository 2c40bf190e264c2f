package lifecycle_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/judge/allocation"
	"github.com/accel-exporter/accel-exporter/internal/trace/lifecycle"
	"github.com/accel-exporter/accel-exporter/podmap"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func at(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }

// rig looks at what a test says is there.
type rig struct {
	t       *testing.T
	tracker *lifecycle.Tracker
	events  []collector.Event
	got     []string
}

func newRig(t *testing.T) *rig { return &rig{t: t, tracker: lifecycle.New()} }

// look has the tracker look, so many seconds after the start.
func (r *rig) look(seconds int, change func(*allocation.Lives), holds ...allocation.Life) {
	v := &allocation.Lives{Time: at(seconds), Complete: true, Holds: holds}
	if change != nil {
		change(v)
	}
	r.note(r.tracker.Look(v, r.events))
}

func (r *rig) note(records []lifecycle.Record) {
	for _, x := range records {
		text := fmt.Sprintf("%s %s@%s %s %v", x.Life.Pod.Name, x.Kind, x.Life.Device, x.Time.Sub(start), x.Observed)
		if f := x.Fault; f != nil {
			text += fmt.Sprintf(" %s %d %s %s", f.Name, f.Code, f.Sub, f.Detail)
		}
		r.got = append(r.got, text)
	}
}

// want checks what was told since it was last called.
func (r *rig) want(want ...string) {
	r.t.Helper()
	if diff := cmp.Diff(want, r.got); diff != "" {
		r.t.Errorf("records (-want +got):\n%s", diff)
	}
	r.got = nil
}

// held is a hold that was first listed then, and was not listed a second before.
func held(pod, device string, since int, change ...func(*allocation.Life)) allocation.Life {
	l := allocation.Life{
		Pod: podmap.Pod{Namespace: "ml", Name: pod}, Containers: []string{"main"}, Device: device,
		Since: at(since), After: at(since - 1), IdleKnown: true,
	}
	for _, f := range change {
		f(&l)
	}
	return l
}

// worked says that the pod did something first, and last.
func worked(first, last int) func(*allocation.Life) {
	return func(l *allocation.Life) { l.First, l.Last = at(first), at(last) }
}

// idle says that the pod has done nothing since then.
func idle(since int) func(*allocation.Life) {
	return func(l *allocation.Life) { l.IdleSince = at(since) }
}

// unknown says that nobody can tell whether the pod does something.
func unknown(l *allocation.Life) { l.IdleKnown, l.IdleSince = false, time.Time{} }

// found says that the hold may be older.
func found(l *allocation.Life) { l.After = time.Time{} }

func failed(name string, seconds int) func(*allocation.Life) {
	return func(l *allocation.Life) {
		l.Faults = append(l.Faults, allocation.Fault{Name: name, Time: at(seconds)})
	}
}

func incomplete(v *allocation.Lives) { v.Complete = false }

func TestStory(t *testing.T) {
	r := newRig(t)
	r.look(0, nil)
	r.look(10, nil, held("a", "GPU-1", 10))
	r.want("a held@GPU-1 10s true")
	r.look(80, nil, held("a", "GPU-1", 10, idle(10)))
	r.want() // that is the wait for the first activity
	r.look(100, nil, held("a", "GPU-1", 10, worked(95, 99)))
	r.want("a first_activity@GPU-1 1m35s true")
	r.look(200, nil, held("a", "GPU-1", 10, worked(95, 120), idle(120)))
	r.want("a idle_began@GPU-1 2m0s true")
	r.look(230, nil, held("a", "GPU-1", 10, worked(95, 120), unknown))
	r.look(231, nil, held("a", "GPU-1", 10, worked(95, 120), idle(120)))
	r.want() // nobody knew for a moment
	r.look(300, nil, held("a", "GPU-1", 10, worked(95, 290)))
	r.want("a idle_ended@GPU-1 4m50s true")
	r.events = []collector.Event{
		{Kind: collector.EventXid, Code: 79, Device: "GPU-1", Time: at(310), Sub: "unit", Detail: "fell off"},
		{Kind: collector.EventXid, Code: 79, Device: "GPU-1", Time: at(305), Past: true},
		{Kind: collector.EventXid, Code: 79, Device: "GPU-2", Time: at(310)},
	}
	r.look(311, nil, held("a", "GPU-1", 10, worked(95, 300), failed("xid_79", 310), failed("bus_loss", 310)))
	r.want("a fault@GPU-1 5m10s true xid_79 79 unit fell off", "a fault@GPU-1 5m10s true bus_loss 0  ")
	r.look(320, nil)
	r.want() // it may still be charged with something
	r.look(330, nil, held("a", "GPU-1", 10, worked(95, 300), failed("xid_79", 310), failed("bus_loss", 310), failed("xid_154", 319), func(l *allocation.Life) { l.Until = at(320) }))
	r.want("a fault@GPU-1 5m19s true xid_154 154  ")
	r.look(340, nil)
	r.want("a released@GPU-1 5m20s true")
	r.look(350, nil)
	r.want()
}

// What cannot be seen ends nothing.
func TestUnseen(t *testing.T) {
	for name, change := range map[string]func(*allocation.Lives){
		"list unknown":  incomplete,
		"device gone":   func(v *allocation.Lives) { v.Lost = map[podmap.Pod]bool{{Namespace: "ml", Name: "a"}: true} },
		"more than fit": func(v *allocation.Lives) { v.Omitted = map[string]bool{"GPU-1": true} },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.look(10, nil, held("a", "GPU-1", 10, worked(10, 10)))
			r.got = nil
			for s := 20; s < 5000; s += 100 {
				r.look(s, change)
			}
			r.want()
			r.look(5000, nil, held("a", "GPU-1", 4990, found))
			r.want() // the kubelet is back, and knows the pod
			r.look(5001, change)
			r.look(5010, nil)
			r.look(5030, nil)
			r.want("a released@GPU-1 1h23m30s false")
		})
	}
}

// A pod of the same name is another one, where a complete list was without it.
func TestSuccessor(t *testing.T) {
	r := newRig(t)
	r.look(10, nil, held("a", "GPU-1", 10), held("a", "GPU-2", 10))
	r.look(20, nil)
	r.got = nil
	r.look(25, nil, held("a", "GPU-1", 25), held("a", "GPU-3", 25))
	r.want("a released@GPU-1 24s true", "a released@GPU-2 20s true", "a held@GPU-1 25s true", "a held@GPU-3 25s true")
	// Looks that were left out make no difference.
	r.look(60, nil, held("a", "GPU-1", 50), held("a", "GPU-3", 25))
	r.want("a released@GPU-1 49s true", "a held@GPU-1 50s true")
}

// A hold that is found says so, and its idleness is no wait for it to begin.
func TestFound(t *testing.T) {
	r := newRig(t)
	r.look(100, nil, held("a", "GPU-1", 10, found, idle(11)))
	r.want("a held@GPU-1 10s false", "a idle_began@GPU-1 11s true")
	r.look(200, nil, held("a", "GPU-1", 10, found, func(l *allocation.Life) { l.Last = at(190) }))
	r.want("a first_activity@GPU-1 3m10s false", "a idle_ended@GPU-1 3m10s true")
	// Faults of before are not its own.
	r.look(201, nil, held("a", "GPU-1", 10, found, func(l *allocation.Life) { l.Last = at(190) }, failed("xid_31", 5)))
	r.want()
}

// Where nobody knows for long whether a pod is idle, the stretch ends when that
// was last known.
func TestBlind(t *testing.T) {
	r := newRig(t)
	r.look(10, nil, held("a", "GPU-1", 10, worked(10, 10)))
	r.look(80, nil, held("a", "GPU-1", 10, worked(10, 10), idle(10)))
	r.got = nil
	r.look(130, nil, held("a", "GPU-1", 10, worked(10, 10), unknown))
	r.want()
	r.look(150, nil, held("a", "GPU-1", 10, worked(10, 10), unknown))
	r.want("a idle_ended@GPU-1 1m20s false")
}

func TestClose(t *testing.T) {
	r := newRig(t)
	r.look(10, nil, held("a", "GPU-1", 10, worked(10, 10)), held("b", "GPU-2", 10, worked(10, 10)))
	r.look(80, nil, held("a", "GPU-1", 10, worked(10, 10), idle(10)))
	r.got = nil
	r.note(r.tracker.Close())
	r.want("a idle_ended@GPU-1 1m20s false", "b released@GPU-2 1m20s true")
}
