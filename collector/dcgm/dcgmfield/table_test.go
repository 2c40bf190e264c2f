package dcgmfield

import (
	"slices"
	"testing"
)

func TestTableIsWhole(t *testing.T) {
	all := All()
	if len(all) < 600 {
		t.Errorf("%d fields", len(all))
	}
	names := map[string]uint16{}
	for _, f := range all {
		for _, n := range append([]string{f.Name}, f.Former...) {
			if id, twice := names[n]; twice {
				t.Errorf("%s means fields %d and %d", n, id, f.ID)
			}
			names[n] = f.ID
		}
		switch f.Kind {
		case Gauge, Counter:
			if f.Type != Int64 && f.Type != Double {
				t.Errorf("%s is a %s of type %s", f.Name, f.Kind, f.Type)
			}
		case Info:
			if f.Type != String || f.Unit != "" {
				t.Errorf("%s: %+v", f.Name, f)
			}
		case None:
			if f.Type != Binary {
				t.Errorf("%s: %+v", f.Name, f)
			}
		default:
			t.Errorf("%s has kind %q", f.Name, f.Kind)
		}
		if !slices.Contains([]Entity{Node, GPU, GPUInstance, ComputeInstance, VGPU, Switch, Link, CPU, CPUCore, ConnectX}, f.Entity) {
			t.Errorf("%s describes %q", f.Name, f.Entity)
		}
	}
}
