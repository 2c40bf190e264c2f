package sim

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/accel-exporter/accel-exporter/collector/sysfs"
	"github.com/accel-exporter/accel-exporter/internal/sim/faketree"
)

// A reconfiguration is played step by step, as each family shows it.
func TestReconfigurationSteps(t *testing.T) {
	const afu = "d8424dc4a4a3c413f89e433683f9040b"
	for _, tc := range []struct {
		words, watch string
		want         []string
	}{
		{"fpga-reconfigure n3000 --afu=" + afu, "/sys/class/fpga_manager/fpga0/state", []string{"firmware request\n", "write init\n", "write\n", "write complete\n", "operating\n"}},
		{"fpga-reconfigure n3000 --afu=" + afu, "/sys/bus/platform/devices/dfl-port.0/afu_id", []string{"EBUSY", "EBUSY", "EBUSY", "EBUSY", afu + "\n"}},
		{"fpga-reconfigure n3000 --afu=" + afu, "/sys/class/fpga_bridge/br0/state", []string{"disabled\n", "disabled\n", "disabled\n", "disabled\n", "enabled\n"}},
		{"fpga-reconfigure n3000 --fail", "/sys/class/fpga_manager/fpga0/state", []string{"firmware request\n", "write init\n", "write\n", "write complete\n", "write error\n"}},
		{"fpga-reconfigure n3000 --fail", "/sys/bus/platform/devices/dfl-port.0/afu_id", []string{"EBUSY", "EBUSY", "EBUSY", "EBUSY", "EBUSY"}},
		{"fpga-reconfigure u250 --uuid=A0B1", "/sys/bus/pci/devices/0000:5e:00.1/xclbinuuid", []string{"", "a0b1\n"}},
		{"fpga-reconfigure u250 --fail", "/sys/bus/pci/devices/0000:5e:00.1/xclbinuuid", []string{"", ""}},
		{"fpga-reconfigure zynqmp --firmware=edge.bin", "/sys/firmware/devicetree/base/fpga-full/firmware-name", []string{
			"vadd_wrapper.bit.bin\x00", "vadd_wrapper.bit.bin\x00", "vadd_wrapper.bit.bin\x00", "vadd_wrapper.bit.bin\x00", "edge.bin\x00",
		}},
	} {
		s := compiled(t, "mixed-node")
		words := strings.Fields(tc.words)
		given := map[string]string{"card": words[1]}
		name, value, _ := strings.Cut(strings.TrimPrefix(words[2], "--"), "=")
		given[name] = map[bool]string{true: "true", false: value}[value == ""]
		var got []string
		see := func() {
			text, ok := s.tree.Get(tc.watch)
			if errno := s.tree.Err(tc.watch); !ok && errno == syscall.EBUSY {
				text = "EBUSY"
			}
			got = append(got, text)
		}
		if err := findFault("fpga-reconfigure").begin(s, given); err != nil {
			t.Fatal(err)
		}
		for len(s.later) > 0 {
			if err := s.later[0].do(s); err != nil {
				t.Fatal(err)
			}
			s.later = s.later[1:]
			see()
		}
		if d := cmp.Diff(tc.want, got); d != "" {
			t.Errorf("%s: %s: %s", tc.words, tc.watch, d)
		}
		if left := s.tree.Blocked(); len(left) != 0 {
			t.Errorf("%s leaves %q blocked", tc.words, left)
		}
	}
}

// A mounted simulation follows edits of other processes.
func TestMountTree(t *testing.T) {
	if !faketree.CanMount() {
		t.Skip("mounting needs root and /dev/fuse")
	}
	state := filepath.Join(t.TempDir(), "state")
	s := compiled(t, "mixed-node")
	s.MountedTree()
	if err := s.Install(state); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	unmount, err := MountTree(ctx, state)
	if err != nil {
		t.Fatal(err)
	}
	sys := sysfs.New(filepath.Join(Root(state), "sys"))
	if _, err := sys.Read("class/fpga_region/region0/compat_id"); sysfs.Errno(err) != syscall.ENOENT || !sys.Exists("class/fpga_region/region0/compat_id") {
		t.Errorf("a region without an id: %v", err)
	}
	id := strings.Repeat("ab", 16)
	given := map[string]string{"card": "n3000", "afu": id, "duration": "8ms"}
	var steps []later
	edit := func(f func(*State) error) {
		t.Helper()
		if err := Update(state, f); err != nil {
			t.Fatal(err)
		}
	}
	edit(func(s *State) error {
		err := findFault("fpga-reconfigure").begin(s, given)
		steps = s.later
		return errors.Join(err, steps[0].do(s))
	})
	afu := "bus/platform/devices/dfl-port.0/afu_id"
	for _, err := sys.Read(afu); sysfs.Errno(err) != syscall.EBUSY; _, err = sys.Read(afu) {
	}
	edit(func(s *State) error { // the first edit is visible
		for _, next := range steps[1:] {
			if err := next.do(s); err != nil {
				return err
			}
		}
		return nil
	})
	for text := ""; text != id; text, _ = sys.Read(afu) {
	}
	given["afu"] = strings.Repeat("cd", 16)
	if err := findFault("fpga-reconfigure").Play(ctx, state, given); err != nil {
		t.Error(err)
	}
	for text := ""; text != given["afu"]; text, _ = sys.Read(afu) {
	}
	stop()
	unmount()
	if list, err := os.ReadDir(Root(state)); err != nil || len(list) != 0 {
		t.Errorf("after unmounting: %v, %v", list, err)
	}
	err = findFault("fpga-reconfigure").Play(ctx, state, map[string]string{"card": "n3000"})
	if err == nil {
		t.Error("a fault was done after its end")
	}
}
