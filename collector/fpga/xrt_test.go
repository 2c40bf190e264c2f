package fpga_test

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/sim/faketree"
)

// composed returns a tree of testdata/trees, of cards without a fixture.
func composed(tb testing.TB, name string) *faketree.Tree {
	tb.Helper()
	tree, err := faketree.Load(filepath.Join("testdata", "trees", name+".txt"))
	if err != nil {
		tb.Fatal(err)
	}
	return tree
}

func TestXilinxGolden(t *testing.T) {
	for _, name := range []string{"xilinx-u250-xrt", "aws-f2"} {
		t.Run(name, func(t *testing.T) {
			compare(t, name, sample(t, open(t, mounted(t, load(t, name)), quiet)))
		})
	}
	for _, name := range []string{"vck5000-xrt", "v80-ami"} {
		t.Run(name, func(t *testing.T) {
			compare(t, name, sample(t, open(t, mounted(t, composed(t, name)), quiet)))
		})
	}
}

// TestEveryCardOnce: on a machine with cards of all families each is one
// device, of the right family.
func TestEveryCardOnce(t *testing.T) {
	machine := faketree.New()
	for _, tree := range []*faketree.Tree{
		load(t, "intel-n3000-dfl"), load(t, "intel-n6001-ofs"), load(t, "xilinx-u250-xrt"), load(t, "xilinx-u250-xrt"),
		load(t, "zynqmp-fpga-manager"), load(t, "aws-f2"), composed(t, "vck5000-xrt"), composed(t, "v80-ami"),
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
