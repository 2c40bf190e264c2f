package main

import (
	"testing"

	"github.com/accel-exporter/accel-exporter/collector"
)

// TestUrgent checks which Snapshots trigger an evaluation: a device comes, goes,
// fails or changes the reasons for its state, or an event happened.
func TestUrgent(t *testing.T) {
	snap := func(down, state string, codes ...string) *collector.Snapshot {
		v := &collector.Verdict{State: state}
		for _, code := range codes {
			v.Reasons = append(v.Reasons, collector.Reason{Code: code})
		}
		return &collector.Snapshot{Devices: []collector.Device{{ID: "a", Down: down, Verdict: v}}}
	}
	seen := map[string]condition{}
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
		if got := urgent(seen, step.snap); got != step.want {
			t.Errorf("step %d: %v, want %v", i, got, step.want)
		}
	}
}
