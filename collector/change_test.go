package collector

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSince(t *testing.T) {
	device := func(id, down, state string, codes ...string) Device {
		v := &Verdict{State: state}
		for _, code := range codes {
			v.Reasons = append(v.Reasons, Reason{Code: code})
		}
		return Device{ID: id, PCI: "0000:1b:00.0", Down: down, Verdict: v}
	}
	var before *Snapshot
	for i, step := range []struct {
		devices []Device
		want    []string
	}{
		{[]Device{device("0000:1b:00.0", "", "unknown")}, []string{"- 0000:1b:00.0"}},
		{[]Device{device("a", "", "healthy"), device("b", "", "healthy")}, []string{"- a", "- b"}},
		{[]Device{device("a", "", "healthy"), device("b", "", "healthy")}, nil},
		{[]Device{device("a", "", "degraded", "row_remap_pending"), device("b", "", "healthy")}, []string{"a a"}},
		{[]Device{device("a", "", "degraded", "xid_145"), device("b", "", "healthy")}, []string{"a a"}},
		{[]Device{device("a", "lost", "degraded", "xid_145")}, []string{"a a", "b -"}},
	} {
		now := &Snapshot{Devices: step.devices}
		var got []string
		name := func(d *Device) string {
			if d == nil {
				return "-"
			}
			return d.ID
		}
		for _, c := range now.Since(before) {
			got = append(got, name(c.Before)+" "+name(c.After))
		}
		if diff := cmp.Diff(step.want, got); diff != "" {
			t.Errorf("step %d: %s", i, diff)
		}
		before = now
	}
}
