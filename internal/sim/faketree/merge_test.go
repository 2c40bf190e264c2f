package faketree_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/accel-exporter/accel-exporter/internal/sim/faketree"
	"github.com/accel-exporter/accel-exporter/internal/sim/simtest"
)

// contents returns the content of all files, whatever their names.
func contents(tree *faketree.Tree) []string {
	var out []string
	for _, name := range tree.Paths() {
		if text, ok := tree.Get(name); ok && filepath.Base(name) != "uevent" {
			out = append(out, filepath.Base(name)+" "+text)
		}
	}
	slices.Sort(out)
	return out
}

// All cards fit into one machine, each with all its files and links.
func TestMergeAllTrees(t *testing.T) {
	node := faketree.New()
	var want []string
	paths := 0
	for _, name := range []string{
		"intel-n3000-dfl", "intel-n6001-ofs", "xilinx-u250-xrt", "zynqmp-fpga-manager", "intel-pac-a10-dfl", "aws-f2",
		"intel-n3000-dfl", "xilinx-u250-xrt", "intel-pac-a10-dfl",
	} {
		tree := simtest.LoadTree(t, name)
		if err := node.Merge(tree); err != nil {
			t.Fatal(err)
		}
		want = append(want, contents(tree)...)
		paths += len(tree.Paths())
	}
	slices.Sort(want)
	if d := cmp.Diff(want, contents(node)); d != "" {
		t.Error(d)
	}
	if len(node.Paths()) != paths {
		t.Errorf("%d paths, want %d", len(node.Paths()), paths)
	}
	for _, name := range node.Paths() {
		target, isLink := node.Target(name)
		if isLink && !node.Exists(name) && filepath.Base(name) != "driver" {
			t.Errorf("%s -> %s leads nowhere", name, target)
		}
	}
	// A class link, the name it leads to and the name in the uevent agree.
	for _, class := range node.Names("/sys/class") {
		for _, name := range node.Names("/sys/class/" + class) {
			real, _ := node.Real("/sys/class/" + class + "/" + name)
			if filepath.Base(real) != name {
				t.Errorf("class %s: %s leads to %s", class, name, real)
			}
		}
	}
	for _, address := range node.Names("/sys/bus/pci/devices") {
		event, _ := node.Get("/sys/bus/pci/devices/" + address + "/uevent")
		if !strings.Contains(event, "PCI_SLOT_NAME="+address+"\n") {
			t.Errorf("%s says %q", address, event)
		}
	}
	if got := node.Names("/sys/class/fpga_manager"); len(got) != 6 {
		t.Errorf("managers %q", got)
	}
}

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
