package faketree_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/accel-exporter/accel-exporter/collector/sysfs"
	"github.com/accel-exporter/accel-exporter/internal/sim/faketree"
)

// Blocked reads end, and an open file does not prevent unmounting.
func TestUnmount(t *testing.T) {
	if !faketree.CanMount() {
		t.Skip("mounting needs root and /dev/fuse")
	}
	tree := faketree.New()
	tree.Set("devices/card/state", "operating\n")
	dir := t.TempDir()
	unmount, err := tree.Mount(dir)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "sys/devices/card/state")
	fd, err := syscall.Open(file, syscall.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	tree.Block("devices/card/state")
	got := make(chan error)
	go func() {
		_, err := os.ReadFile(file)
		got <- err
	}()
	for tree.Reads("devices/card/state") == 0 {
		if _, err := os.Lstat(dir); err != nil {
			t.Fatal(err)
		}
	}
	unmount()
	if err := <-got; sysfs.Errno(err) != syscall.EIO && sysfs.Errno(err) != syscall.ENOTCONN {
		t.Errorf("the blocked read ended with %v", err)
	}
	unmount()
	if list, err := os.ReadDir(dir); err != nil || len(list) != 0 {
		t.Errorf("after unmounting: %v, %v", list, err)
	}
	if err := syscall.Close(fd); err != nil {
		t.Error(err)
	}
	if _, err := tree.Mount(dir); err != nil {
		t.Errorf("mounting again: %v", err)
	}
	if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
		t.Error(err)
	}
}
