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

// rig updates a Tracker with the states of a test.
type rig struct {
	t       *testing.T
	tracker *lifecycle.Tracker
	events  []collector.Event
	got     []string
}

func newRig(t *testing.T) *rig { return &rig{t: t, tracker: lifecycle.New()} }

// update updates the tracker with the state at a time, in seconds after the start.
func (r *rig) update(seconds int, change func(*allocation.History), all ...allocation.Record) {
	v := &allocation.History{Time: at(seconds), Complete: true, Records: all}
	if change != nil {
		change(v)
	}
	r.note(r.tracker.Update(v, r.events))
}

func (r *rig) note(changes []lifecycle.Change) {
	for _, x := range changes {
		text := fmt.Sprintf("%s %s@%s %s %v", x.State.Pod.Name, x.Kind, x.State.Device, x.Time.Sub(start), x.Observed)
		if f := x.Fault; f != nil {
			text += fmt.Sprintf(" %s %d %s %s", f.Name, f.Code, f.Sub, f.Detail)
		}
		r.got = append(r.got, text)
	}
}

// want checks the changes since the previous call.
func (r *rig) want(want ...string) {
	r.t.Helper()
	if diff := cmp.Diff(want, r.got); diff != "" {
		r.t.Errorf("changes (-want +got):\n%s", diff)
	}
	r.got = nil
}

// allocated is an allocation that was first listed at since and not listed a
// second before.
func allocated(pod, device string, since int, change ...func(*allocation.Record)) allocation.Record {
	l := allocation.Record{
		Pod: podmap.Pod{Namespace: "ml", Name: pod}, Containers: []string{"main"}, Device: device,
		Since: at(since), After: at(since - 1), IdleKnown: true,
	}
	for _, f := range change {
		f(&l)
	}
	return l
}

// worked sets the first and the latest activity of the pod.
func worked(first, last int) func(*allocation.Record) {
	return func(l *allocation.Record) { l.First, l.Last = at(first), at(last) }
}

// idle makes the pod inactive since a time.
func idle(since int) func(*allocation.Record) {
	return func(l *allocation.Record) { l.IdleSince = at(since) }
}

// unknown makes it unknown whether the pod is active.
func unknown(l *allocation.Record) { l.IdleKnown, l.IdleSince = false, time.Time{} }

// found marks the start of the allocation as unobserved.
func found(l *allocation.Record) { l.After = time.Time{} }

func failed(name string, seconds int) func(*allocation.Record) {
	return func(l *allocation.Record) {
		l.Faults = append(l.Faults, allocation.Fault{Name: name, Time: at(seconds)})
	}
}

func incomplete(v *allocation.History) { v.Complete = false }

func TestLifecycle(t *testing.T) {
	r := newRig(t)
	r.update(0, nil)
	r.update(10, nil, allocated("a", "GPU-1", 10))
	r.want("a allocated@GPU-1 10s true")
	r.update(80, nil, allocated("a", "GPU-1", 10, idle(10)))
	r.want() // the time before the first activity is not an idle period
	r.update(100, nil, allocated("a", "GPU-1", 10, worked(95, 99)))
	r.want("a first_activity@GPU-1 1m35s true")
	r.update(200, nil, allocated("a", "GPU-1", 10, worked(95, 120), idle(120)))
	r.want("a idle_began@GPU-1 2m0s true")
	r.update(230, nil, allocated("a", "GPU-1", 10, worked(95, 120), unknown))
	r.update(231, nil, allocated("a", "GPU-1", 10, worked(95, 120), idle(120)))
	r.want() // activity was unknown for less than a minute
	r.update(300, nil, allocated("a", "GPU-1", 10, worked(95, 290)))
	r.want("a idle_ended@GPU-1 4m50s true")
	r.events = []collector.Event{
		{Kind: collector.EventXid, Code: 79, Device: "GPU-1", Time: at(310), Sub: "unit", Detail: "fell off"},
		{Kind: collector.EventXid, Code: 79, Device: "GPU-1", Time: at(305), Past: true},
		{Kind: collector.EventXid, Code: 79, Device: "GPU-2", Time: at(310)},
	}
	r.update(311, nil, allocated("a", "GPU-1", 10, worked(95, 300), failed("xid_79", 310), failed("bus_loss", 310)))
	r.want("a fault@GPU-1 5m10s true xid_79 79 unit fell off", "a fault@GPU-1 5m10s true bus_loss 0  ")
	r.update(320, nil)
	r.want() // faults may still arrive
	r.update(330, nil, allocated("a", "GPU-1", 10, worked(95, 300), failed("xid_79", 310), failed("bus_loss", 310), failed("xid_154", 319), func(l *allocation.Record) { l.Until = at(320) }))
	r.want("a fault@GPU-1 5m19s true xid_154 154  ")
	r.update(340, nil)
	r.want("a released@GPU-1 5m20s true")
	r.update(350, nil)
	r.want()
}

// TestFaultWaitsForItsText: an Xid that NVML has reported without a text waits a
// moment for the report of the kernel log, and not longer. The end of the allocation
// ends the wait.
func TestFaultWaitsForItsText(t *testing.T) {
	r := newRig(t)
	xid := collector.Event{Kind: collector.EventXid, Code: 79, Device: "GPU-1", Time: at(310)}
	a := func(name string, seconds int, more ...func(*allocation.Record)) allocation.Record {
		return allocated(name, "GPU-1", 10, append(more, worked(95, 300), failed("xid_79", seconds))...)
	}
	r.update(300, nil, allocated("a", "GPU-1", 10, worked(95, 290)))
	r.got = nil
	r.events = []collector.Event{xid}
	r.update(311, nil, a("a", 310))
	r.want()
	xid.Detail = "fell off"
	r.events = []collector.Event{xid}
	r.update(311, nil, a("a", 310))
	r.want("a fault@GPU-1 5m10s true xid_79 79  fell off")

	xid.Detail, xid.Time = "", at(410)
	r.events = []collector.Event{xid}
	r.update(411, nil, a("a", 410))
	r.want()
	r.update(412, nil, a("a", 410))
	r.want("a fault@GPU-1 6m50s true xid_79 79  ")

	xid.Time = at(510)
	r.events = []collector.Event{xid}
	r.update(511, nil, a("a", 510, func(l *allocation.Record) { l.Until = at(511) }))
	r.want("a fault@GPU-1 8m30s true xid_79 79  ")
}

// TestUnknownState: an allocation does not end while its state is unknown.
func TestUnknownState(t *testing.T) {
	for name, change := range map[string]func(*allocation.History){
		"incomplete list": incomplete,
		"missing device":  func(v *allocation.History) { v.Unresolved = map[podmap.Pod]bool{{Namespace: "ml", Name: "a"}: true} },
		"over the limit":  func(v *allocation.History) { v.Omitted = map[string]bool{"GPU-1": true} },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.update(10, nil, allocated("a", "GPU-1", 10, worked(10, 10)))
			r.got = nil
			for s := 20; s < 5000; s += 100 {
				r.update(s, change)
			}
			r.want()
			r.update(5000, nil, allocated("a", "GPU-1", 4990, found))
			r.want() // the kubelet answers again and lists the pod
			r.update(5001, change)
			r.update(5010, nil)
			r.update(5030, nil)
			r.want("a released@GPU-1 1h23m30s false")
		})
	}
}

// TestSuccessor: a pod that is listed again after a complete list without it has a new
// allocation.
func TestSuccessor(t *testing.T) {
	r := newRig(t)
	r.update(10, nil, allocated("a", "GPU-1", 10), allocated("a", "GPU-2", 10))
	r.update(20, nil)
	r.got = nil
	r.update(25, nil, allocated("a", "GPU-1", 25), allocated("a", "GPU-3", 25))
	r.want("a released@GPU-1 24s true", "a released@GPU-2 20s true", "a allocated@GPU-1 25s true", "a allocated@GPU-3 25s true")
	// The state without the pod may be skipped.
	r.update(60, nil, allocated("a", "GPU-1", 50), allocated("a", "GPU-3", 25))
	r.want("a released@GPU-1 49s true", "a allocated@GPU-1 50s true")
}

// TestUnobservedStart: the start of an allocation that precedes the exporter is
// unobserved. Its inactivity is an idle period, not the time before the first activity.
func TestUnobservedStart(t *testing.T) {
	r := newRig(t)
	r.update(100, nil, allocated("a", "GPU-1", 10, found, idle(11)))
	r.want("a allocated@GPU-1 10s false", "a idle_began@GPU-1 11s true")
	r.update(200, nil, allocated("a", "GPU-1", 10, found, func(l *allocation.Record) { l.Last = at(190) }))
	r.want("a first_activity@GPU-1 3m10s false", "a idle_ended@GPU-1 3m10s true")
	// Earlier faults do not belong to it.
	r.update(201, nil, allocated("a", "GPU-1", 10, found, func(l *allocation.Record) { l.Last = at(190) }, failed("xid_31", 5)))
	r.want()
}

// TestIdlenessUnknown: if activity is unknown for more than a minute, the idle period
// ends when it was last known.
func TestIdlenessUnknown(t *testing.T) {
	r := newRig(t)
	r.update(10, nil, allocated("a", "GPU-1", 10, worked(10, 10)))
	r.update(80, nil, allocated("a", "GPU-1", 10, worked(10, 10), idle(10)))
	r.got = nil
	r.update(130, nil, allocated("a", "GPU-1", 10, worked(10, 10), unknown))
	r.want()
	r.update(150, nil, allocated("a", "GPU-1", 10, worked(10, 10), unknown))
	r.want("a idle_ended@GPU-1 1m20s false")
}

func TestClose(t *testing.T) {
	r := newRig(t)
	r.update(10, nil, allocated("a", "GPU-1", 10, worked(10, 10)), allocated("b", "GPU-2", 10, worked(10, 10)))
	r.update(80, nil, allocated("a", "GPU-1", 10, worked(10, 10), idle(10)))
	r.got = nil
	r.note(r.tracker.Close())
	r.want("a idle_ended@GPU-1 1m20s false", "b released@GPU-2 1m20s true")
}
