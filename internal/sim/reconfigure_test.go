package sim

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/accel-exporter/accel-exporter/collector/sysfs"
	"github.com/accel-exporter/accel-exporter/internal/sim/faketree"
)

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
