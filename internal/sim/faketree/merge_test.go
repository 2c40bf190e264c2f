package faketree_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/accel-exporter/accel-exporter/internal/sim/faketree"
	"github.com/accel-exporter/accel-exporter/internal/sim/simtest"
)

func TestMergeRefuses(t *testing.T) {
	node := simtest.LoadTree(t, "zynqmp-fpga-manager")
	before := node.Bytes()
	err := node.Merge(simtest.LoadTree(t, "zynqmp-fpga-manager"))
	if err == nil || !strings.Contains(err.Error(), "both trees have bus/platform/devices/ffa50000.ams, ") {
		t.Errorf("two Zynqs: %v", err)
	}
	if string(before) != string(node.Bytes()) {
		t.Error("the tree changed")
	}
	other := faketree.New()
	other.Set("/sys/firmware/devicetree/base/model", "another\x00")
	if err := node.Merge(other); err == nil || err.Error() != "/sys/firmware/devicetree/base/model differs between the trees" {
		t.Errorf("two models: %v", err)
	}
}

func TestRestore(t *testing.T) {
	pristine := simtest.LoadTree(t, "intel-n3000-dfl")
	tree := pristine.Clone()
	card := "/sys/bus/pci/devices/0000:1b:00.0"
	device, _ := tree.Real(card)
	tree.Set(card+"/numa_node", "1\n")
	tree.Set("/sys/bus/platform/devices/dfl-port.0/new", "1\n")
	tree.Set("/sys/elsewhere", "1\n")
	tree.Restore(pristine, device)
	pristine.Set("/sys/elsewhere", "1\n")
	if d := cmp.Diff(string(pristine.Bytes()), string(tree.Bytes())); d != "" {
		t.Error(d)
	}
	tree.Unplug(device)
	if tree.Exists(card) {
		t.Fatal("the card is still there")
	}
	tree.Restore(pristine, device)
	if d := cmp.Diff(string(pristine.Bytes()), string(tree.Bytes())); d != "" {
		t.Error(d)
	}
}
