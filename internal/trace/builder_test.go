package trace

import (
	"fmt"
	"testing"
	"time"

	"github.com/accel-exporter/accel-exporter/internal/golden/rig"
	"github.com/accel-exporter/accel-exporter/internal/judge/allocation"
	"github.com/accel-exporter/accel-exporter/internal/trace/lifecycle"
	"github.com/accel-exporter/accel-exporter/podmap"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func at(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }

// fixture is a Builder with the identity of every pod.
type fixture struct {
	*Builder
	known       Identity
	allocations uint64
}

func newFixture(known Identity) *fixture {
	d := &fixture{known: known}
	d.Builder = NewBuilder("node-1", func(podmap.Pod, time.Time) Identity { return d.known })
	return d
}

// changes returns the first and the last change of an allocation.
func (d *fixture) changes(pod string, since int) (allocated, released lifecycle.Change) {
	d.allocations++
	record := &allocation.Record{Pod: podmap.Pod{Namespace: "ml", Name: pod}, Device: "GPU-1", Since: at(since), Last: at(since)}
	allocated = lifecycle.Change{Allocation: d.allocations, Kind: lifecycle.Allocated, Time: at(since), Observed: true, State: record}
	released = lifecycle.Change{Allocation: d.allocations, Kind: lifecycle.Released, Time: at(since + 10), Observed: true, State: record}
	return allocated, released
}

// TestIdentity: spans wait for the UID of their pod for a limited time.
func TestIdentity(t *testing.T) {
	d := newFixture(Identity{})
	allocated, released := d.changes("a", 10)
	if got := d.Write(at(10), []lifecycle.Change{allocated}); len(got) > 0 {
		t.Errorf("%+v", got)
	}
	d.known = Identity{UID: "u", Context: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", Final: true}
	got := d.Write(at(12), nil)
	if len(got) != 1 || got[0].Pod.UID != "u" || got[0].Trace.String() != "0af7651916cd43dd8448eb211c80319c" {
		t.Fatalf("%+v", got)
	}
	end := d.Write(at(30), []lifecycle.Change{released})
	if len(end) != 2 || end[0].Trace != got[0].Trace || got[0].Parent.SpanID() != end[0].ID || end[0].Parent.SpanID() != end[1].ID || end[1].Parent.SpanID().String() != "b7ad6b7169203331" {
		t.Errorf("%+v", end)
	}

	d = newFixture(Identity{})
	allocated, released = d.changes("a", 10)
	if got := d.Write(at(10), []lifecycle.Change{allocated}); len(got) > 0 {
		t.Errorf("%+v", got)
	}
	if got := d.Write(at(20), nil); len(got) != 1 || got[0].Pod.UID != "" {
		t.Errorf("%+v", got)
	}
	if got := d.Write(at(21), []lifecycle.Change{released}); len(got) != 2 || d.Open() != 0 {
		t.Errorf("%+v", got)
	}
}

// TestTraceIDs: two successive allocations of a pod are two traces. Another
// exporter gives the same allocation the same trace.
func TestTraceIDs(t *testing.T) {
	for name, known := range map[string]Identity{"by UID": {UID: "u", Final: true}, "by name": {Final: true}} {
		t.Run(name, func(t *testing.T) {
			build := func() (traces [2]string) {
				d := newFixture(known)
				for i := range traces {
					allocated, released := d.changes("a", 10+100*i)
					spans := d.Write(at(100*i+10), []lifecycle.Change{allocated, released})
					if len(spans) != 3 {
						t.Fatalf("%d spans", len(spans))
					}
					traces[i] = spans[0].Trace.String()
				}
				return traces
			}
			first := build()
			if first[0] == first[1] || first != build() {
				t.Errorf("%v, then %v", first, build())
			}
		})
	}
}

// TestParent: spans join the trace of a valid annotation. An invalid one is ignored.
func TestParent(t *testing.T) {
	const annotation = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for name, c := range map[string]struct {
		context string
		joined  bool
	}{
		"W3C":       {annotation, true},
		"Tekton":    {`{"traceparent":"` + annotation + `"}`, true},
		"text":      {"hello", false},
		"all zeros": {"00-00000000000000000000000000000000-0000000000000000-01", false},
		"JSON":      {`{"traceparent":5}`, false},
		"broken":    {`{"traceparent":"` + annotation, false},
	} {
		d := newFixture(Identity{UID: "u", Context: c.context, Final: true})
		allocated, released := d.changes("a", 10)
		spans := d.Write(at(20), []lifecycle.Change{allocated, released})
		root := spans[len(spans)-1]
		if joined := root.Trace.String() == annotation[3:35] && root.Parent.SpanID().String() == annotation[36:52]; joined != c.joined || !joined && root.Parent.IsValid() {
			t.Errorf("%s: the root has the trace %s and the parent %s", name, root.Trace, root.Parent.SpanID())
		}
	}
}

// TestManyFaults: the number of faults of one device is bounded, and the rest is
// counted.
func TestManyFaults(t *testing.T) {
	d := newFixture(Identity{UID: "u", Final: true})
	allocated, released := d.changes("a", 10)
	changes := []lifecycle.Change{allocated}
	for i := range 50 {
		changes = append(changes, lifecycle.Change{
			Allocation: allocated.Allocation, Kind: lifecycle.FaultFound, Time: at(10), State: allocated.State,
			Fault: &lifecycle.Fault{Name: fmt.Sprint("xid_", i), Code: uint64(i)},
		})
	}
	faults, ids := 0, map[string]bool{}
	for _, s := range d.Write(at(20), append(changes, released)) {
		ids[s.ID.String()] = true
		if s.Name == spanFault {
			faults++
		}
		if s.Name != spanHold {
			continue
		}
		omitted := int64(0)
		for _, a := range s.Attrs {
			if a.Key == "accel.faults_omitted" {
				omitted = a.Value.AsInt64()
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

// TestUnknownAllocation: changes of an allocation without a start are ignored.
func TestUnknownAllocation(t *testing.T) {
	d := newFixture(Identity{Final: true})
	_, released := d.changes("a", 10)
	if got := d.Write(at(20), []lifecycle.Change{released}); len(got) > 0 || d.Open() != 0 {
		t.Errorf("%+v", got)
	}
}

// TestPast: the number of ended traces in memory is bounded.
func TestPast(t *testing.T) {
	d := newFixture(Identity{})
	for i := range maxPast + 10 {
		allocated, released := d.changes(fmt.Sprint("pod-", i), i)
		d.Write(at(i+20), []lifecycle.Change{allocated, released})
	}
	if len(d.past) != maxPast || len(d.order) != maxPast || d.Open() != 0 {
		t.Errorf("%d and %d traces kept", len(d.past), len(d.order))
	}
}

// TestClockIsSet: a span has its duration although the clock was set during it.
func TestClockIsSet(t *testing.T) {
	for _, by := range []time.Duration{5 * time.Hour, -5 * time.Hour} {
		d := newFixture(Identity{UID: "u", Final: true})
		allocated, released := d.changes("a", 10)
		allocated.Time = time.Now()
		released.Time = rig.SetClock(allocated.Time.Add(10*time.Second), by)
		for _, s := range d.Write(released.Time, []lifecycle.Change{allocated, released})[1:] {
			if s.End.Round(0).Sub(s.Start.Round(0)) != 10*time.Second || !s.End.Equal(released.Time) {
				t.Errorf("by %v: %s from %v to %v", by, s.Name, s.Start, s.End)
			}
		}
	}
}
