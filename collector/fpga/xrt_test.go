package fpga_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/sim/faketree"
)

// TestEveryCardOnce: on a machine with cards of all families each is one
// device, of the right family.
func TestEveryCardOnce(t *testing.T) {
	machine := faketree.New()
	for _, tree := range []*faketree.Tree{
		load(t, "intel-n3000-dfl"), load(t, "intel-n6001-ofs"), load(t, "xilinx-u250-xrt"), load(t, "xilinx-u250-xrt"),
		load(t, "zynqmp-fpga-manager"), load(t, "aws-f2"), load(t, "vck5000-xrt"), load(t, "v80-ami"),
	} {
		if err := machine.Merge(tree); err != nil {
			t.Fatal(err)
		}
	}
	machine.Forbid(forbidden...)
	families := map[string]int{}
	ids := map[string]bool{}
	for _, d := range sample(t, open(t, mounted(t, machine), quiet)).Devices {
		for _, id := range append([]string{d.ID}, d.Functions...) {
			if ids[id] {
				t.Errorf("%s twice", id)
			}
			ids[id] = true
		}
		families[names(d, collector.FPGAInfo, 0)[0]]++
	}
	want := map[string]int{"dfl": 2, "xrt": 3, "manager": 1, "aws": 1, "ami": 1}
	if diff := cmp.Diff(want, families); diff != "" {
		t.Error(diff)
	}
	if v := machine.Violations(); len(v) > 0 {
		t.Errorf("%q", v)
	}
}
