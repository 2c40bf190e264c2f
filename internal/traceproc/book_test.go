package traceproc

import (
	"fmt"
	"testing"
	"time"

	"github.com/accel-exporter/accel-exporter/internal/judge/allocation"
	"github.com/accel-exporter/accel-exporter/internal/trace/lifecycle"
	"github.com/accel-exporter/accel-exporter/podmap"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func at(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }

// desk is a Book and what is known of the pods.
type desk struct {
	*Book
	known Identity
	holds uint64
}

func newDesk(known Identity) *desk {
	d := &desk{known: known}
	d.Book = NewBook("node-1", func(podmap.Pod, time.Time) Identity { return d.known })
	return d
}

// hold is what one hold of a pod tells: what is told at once and what later.
func (d *desk) hold(pod string, since int) (held, released lifecycle.Record) {
	d.holds++
	life := &allocation.Life{Pod: podmap.Pod{Namespace: "ml", Name: pod}, Device: "GPU-1", Since: at(since), Last: at(since)}
	held = lifecycle.Record{Hold: d.holds, Kind: lifecycle.Held, Time: at(since), Observed: true, Life: life}
	released = lifecycle.Record{Hold: d.holds, Kind: lifecycle.Released, Time: at(since + 10), Observed: true, Life: life}
	return held, released
}

// TestIdentity: spans wait for the UID of their pod, and not for ever.
func TestIdentity(t *testing.T) {
	d := newDesk(Identity{})
	held, released := d.hold("a", 10)
	if got := d.Write(at(10), []lifecycle.Record{held}); len(got) > 0 {
		t.Errorf("%+v", got)
	}
	d.known = Identity{UID: "u", Context: "c", Sure: true}
	got := d.Write(at(12), nil)
	if len(got) != 1 || got[0].Pod.UID != "u" || got[0].Context != "c" {
		t.Fatalf("%+v", got)
	}
	end := d.Write(at(30), []lifecycle.Record{released})
	if len(end) != 2 || end[0].Trace != got[0].Trace || got[0].Parent != end[0].ID || end[0].Parent != end[1].ID || end[1].Parent != "" {
		t.Errorf("%+v", end)
	}

	d = newDesk(Identity{})
	held, released = d.hold("a", 10)
	if got := d.Write(at(10), []lifecycle.Record{held}); len(got) > 0 {
		t.Errorf("%+v", got)
	}
	if got := d.Write(at(20), nil); len(got) != 1 || got[0].Pod.UID != "" {
		t.Errorf("%+v", got)
	}
	if got := d.Write(at(21), []lifecycle.Record{released}); len(got) != 2 || d.Open() != 0 {
		t.Errorf("%+v", got)
	}
}

// TestTraces: two allocations are two traces, whatever they have in common, and
// the same one is the same for another exporter.
func TestTraces(t *testing.T) {
	for name, known := range map[string]Identity{"by UID": {UID: "u", Sure: true}, "by name": {Sure: true}} {
		t.Run(name, func(t *testing.T) {
			tell := func() (traces [2]string) {
				d := newDesk(known)
				for i := range traces {
					held, released := d.hold("a", 10+100*i)
					spans := d.Write(at(100*i+10), []lifecycle.Record{held, released})
					if len(spans) != 3 {
						t.Fatalf("%d spans", len(spans))
					}
					traces[i] = spans[0].Trace
				}
				return traces
			}
			first := tell()
			if first[0] == first[1] || first != tell() {
				t.Errorf("%v, then %v", first, tell())
			}
		})
	}
}

// TestManyFaults: of a device that has one fault after the other so many are
// told, and how many were not.
func TestManyFaults(t *testing.T) {
	d := newDesk(Identity{UID: "u", Sure: true})
	held, released := d.hold("a", 10)
	records := []lifecycle.Record{held}
	for i := range 50 {
		records = append(records, lifecycle.Record{
			Hold: held.Hold, Kind: lifecycle.FaultFound, Time: at(10), Life: held.Life,
			Fault: &lifecycle.Fault{Name: fmt.Sprint("xid_", i), Code: uint64(i)},
		})
	}
	faults, ids := 0, map[string]bool{}
	for _, s := range d.Write(at(20), append(records, released)) {
		ids[s.ID] = true
		if s.Name == spanFault {
			faults++
		}
		if s.Name != spanHold {
			continue
		}
		omitted := int64(0)
		for _, a := range s.Attrs {
			if a.Key == "accel.faults_omitted" {
				omitted = a.Int
			}
		}
		if len(s.Events) != maxEvents || omitted != 50-maxEvents || s.Error != "released 10s after xid_49" {
			t.Errorf("%d events, %d omitted: %s", len(s.Events), omitted, s.Error)
		}
	}
	if faults != maxEvents || len(ids) != maxEvents+3 {
		t.Errorf("%d faults, %d IDs", faults, len(ids))
	}
}

// TestUnknownHold: of a hold that was never begun nothing is told.
func TestUnknownHold(t *testing.T) {
	d := newDesk(Identity{Sure: true})
	_, released := d.hold("a", 10)
	if got := d.Write(at(20), []lifecycle.Record{released}); len(got) > 0 || d.Open() != 0 {
		t.Errorf("%+v", got)
	}
}

// TestPast: the allocations that are remembered are bounded.
func TestPast(t *testing.T) {
	d := newDesk(Identity{})
	for i := range maxPast + 10 {
		held, released := d.hold(fmt.Sprint("pod-", i), i)
		d.Write(at(i+20), []lifecycle.Record{held, released})
	}
	if len(d.past) != maxPast || len(d.order) != maxPast || d.Open() != 0 {
		t.Errorf("%d and %d are remembered", len(d.past), len(d.order))
	}
}
