package allocation_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/judge/allocation"
	"github.com/accel-exporter/accel-exporter/podmap"
)

// records checks every record, except for the description of its device.
func (r *rig) records(want ...allocation.Record) *allocation.History {
	r.t.Helper()
	got := r.j.History()
	ignore := cmpopts.IgnoreFields(allocation.Record{}, "Class", "Vendor", "Model", "Index", "PCI", "Containers", "Resources")
	if diff := cmp.Diff(want, got.Records, ignore, cmpopts.EquateEmpty()); diff != "" {
		r.t.Errorf("records after %v (-want +got):\n%s", r.now.Sub(start), diff)
	}
	return got
}

// TestHistory: the record of an allocation until an hour after its end, with a fault
// that is reported after the end.
func TestHistory(t *testing.T) {
	r := newRig(t)
	if got := r.j.History(); !got.Time.IsZero() || got.Complete || len(got.Records) > 0 {
		t.Errorf("before the first Snapshot: %+v", got)
	}
	at := func(d time.Duration) time.Time { return start.Add(d) }
	r.list()
	r.happen(0, nil, device(gpuA, 0, compute(0)))
	r.list(alloc("a", gpu, gpuA, began(10*time.Second, 5*time.Second)))
	life := allocation.Record{Pod: podmap.Pod{Namespace: "ml", Name: "a"}, Device: gpuA, Since: at(10 * time.Second), After: at(5 * time.Second), IdleKnown: true}
	r.happen(10*time.Second, nil, device(gpuA, 0, compute(0)))
	if got := r.records(life); !got.Complete || !got.Time.Equal(r.now) || got.Records[0].Model == "" || got.Records[0].Containers[0] != "main" {
		t.Errorf("%+v", got)
	}
	for s := 20; s <= 80; s += 10 {
		r.happen(time.Duration(s)*time.Second, nil, device(gpuA, 0, compute(0)))
	}
	life.IdleSince = at(10 * time.Second)
	r.records(life)
	r.happen(90*time.Second, nil, device(gpuA, 0, compute(0.9)))
	life.IdleSince, life.First, life.Last = time.Time{}, at(90*time.Second), at(90*time.Second)
	r.records(life)
	r.happen(91*time.Second, nil, device(gpuA, 0, compute(0.8)))
	life.Last = at(91 * time.Second)
	r.records(life)

	r.list()
	r.happen(100*time.Second, nil, device(gpuA, 0, compute(0)))
	life.Until = at(100 * time.Second)
	r.records(life)
	r.happen(105*time.Second, []collector.Event{xid(79, 99*time.Second)}, device(gpuA, 0, compute(0)))
	life.Faults = []allocation.Fault{{Name: "xid_79", Time: at(99 * time.Second)}}
	got := r.records(life)
	e := xid(79, 99*time.Second)
	if !got.Records[0].Affects(&e) || allocation.FaultName(&e) != "xid_79" {
		t.Error("the event does not match the fault")
	}
	r.happen(2*time.Hour, nil, device(gpuA, 0, compute(0)))
	r.records()
}

// TestHistoryUnknown: the reasons for incomplete records.
func TestHistoryUnknown(t *testing.T) {
	r := newRig(t, func(r *rig) { r.settings.MaxHolders = 1 })
	r.list(alloc("a", gpu, gpuA), alloc("b", gpu, gpuB), alloc("c", gpu, "GPU-5f1c9a1e-0009-0009-0009-000000000009"))
	r.happen(0, nil, device(gpuA, 0), device(gpuB, 1))
	got := r.j.History()
	if len(got.Records) != 1 || !got.Omitted[gpuB] || got.Omitted[gpuA] || !got.Unresolved[podmap.Pod{Namespace: "ml", Name: "c"}] || len(got.Unresolved) != 1 {
		t.Errorf("%+v", got)
	}
	r.state(podmap.StateStale)
	r.happen(time.Second, nil, device(gpuA, 0), device(gpuB, 1))
	if r.j.History().Complete {
		t.Error("complete although the list is stale")
	}
}
