package main

import (
	"testing"

	"github.com/accel-exporter/accel-exporter/collector"
)

// What cannot wait for the next evaluation: a device that comes, goes, fails or
// has another reason against it, and nothing else.
func TestTurned(t *testing.T) {
	snap := func(down, state string, codes ...string) *collector.Snapshot {
		v := &collector.Verdict{State: state}
		for _, code := range codes {
			v.Reasons = append(v.Reasons, collector.Reason{Code: code})
		}
		return &collector.Snapshot{Devices: []collector.Device{{ID: "a", Down: down, Verdict: v}}}
	}
	seen := map[string]standing{}
	for i, step := range []struct {
		snap *collector.Snapshot
		want bool
	}{
		{snap("", "healthy"), true},
		{snap("", "healthy"), false},
		{snap("", "degraded", "row_remap_pending"), true},
		{snap("", "degraded", "row_remap_pending"), false},
		{snap("", "degraded", "row_remap_pending", "xid_145"), true},
		{snap("lost", "degraded", "row_remap_pending", "xid_145"), true},
		{&collector.Snapshot{News: []collector.Event{{}}, Devices: snap("lost", "degraded", "row_remap_pending", "xid_145").Devices}, true},
		{&collector.Snapshot{}, true},
		{&collector.Snapshot{}, false},
	} {
		if got := turned(seen, step.snap); got != step.want {
			t.Errorf("step %d: %v, want %v", i, got, step.want)
		}
	}
}
