package faketree_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/accel-exporter/accel-exporter/collector/sysfs"
	"github.com/accel-exporter/accel-exporter/internal/sim/faketree"
	"github.com/accel-exporter/accel-exporter/internal/sim/simtest"
)

const card = `#err	EBUSY	/sys/devices/card/afu_id
#mode	0200	/sys/devices/card/cancel
#note	secret-never-open	/sys/devices/card/key
/sys/devices/card/afu_id	d8424dc4\n
/sys/devices/card/key	00ff\n
/sys/devices/card/state	operating\n
/sys/devices/card/temp	38000\n
/sys/class/fpga/card0 -> ../../devices/card
`

// mount mounts a tree and returns it with package sysfs.
func mount(t *testing.T, text string) (*faketree.Tree, sysfs.FS) {
	t.Helper()
	tree, err := faketree.Parse("card.txt", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return tree, sysfs.New(simtest.MountTree(t, tree))
}

func TestMountedFilesFollowTheTree(t *testing.T) {
	tree, fs := mount(t, card)
	read := func(name, want string, errno syscall.Errno) {
		t.Helper()
		got, err := fs.Read(name)
		if got != want || sysfs.Errno(err) != errno {
			t.Errorf("%s: %q, %v; want %q, %v", name, got, err, want, errno)
		}
	}
	read("class/fpga/card0/state", "operating", 0)
	read("class/fpga/card0/afu_id", "", syscall.EBUSY)
	read("class/fpga/card0/absent", "", syscall.ENOENT)
	tree.Set("/sys/class/fpga/card0/afu_id", "33946d56\n")
	tree.SetErr("class/fpga/card0/state", syscall.ENODATA)
	read("class/fpga/card0/afu_id", "33946d56", 0)
	read("devices/card/state", "", syscall.ENODATA)
	if got, err := fs.Names("class/fpga/card0"); err != nil || !slices.Equal(got, []string{"afu_id", "cancel", "key", "state", "temp"}) {
		t.Errorf("names %v, %v", got, err)
	}
	if err := tree.Rename("devices/card/temp", "devices/card/hwmon/hwmon3/temp1_input"); err != nil {
		t.Error(err)
	}
	read("class/fpga/card0/temp", "", syscall.ENOENT)
	read("class/fpga/card0/hwmon/hwmon3/temp1_input", "38000", 0)
	if got, err := fs.Resolve("class/fpga/card0"); got != "devices/card" || err != nil {
		t.Errorf("the link leads to %q, %v", got, err)
	}
	if !tree.Remove("devices/card") {
		t.Error("no card to remove")
	}
	read("class/fpga/card0/state", "", syscall.ENOENT)
	if tree.Exists("class/fpga/card0") || !fs.Exists("class/fpga/card0") {
		t.Error("the link should stay and lead nowhere")
	}
}

func TestMountedFilesAreCounted(t *testing.T) {
	tree, fs := mount(t, card)
	for range 3 {
		if _, err := fs.Read("class/fpga/card0/temp"); err != nil {
			t.Fatal(err)
		}
	}
	tree.Forbid("/sys/devices/*/state")
	for name, errno := range map[string]syscall.Errno{"state": 0, "key": 0, "cancel": syscall.EACCES, "afu_id": syscall.EBUSY} {
		if _, err := fs.Read("devices/card/" + name); sysfs.Errno(err) != errno {
			t.Errorf("%s: %v, want %v", name, err, errno)
		}
	}
	if err := os.WriteFile(fs.Path("devices/card/temp"), []byte("1"), 0o600); !errors.Is(err, syscall.EROFS) {
		t.Errorf("writing: %v", err)
	}
	if o, r := tree.Opens("devices/card/temp"), tree.Reads("devices/card/temp"); o != 4 || r != 3 {
		t.Errorf("%d opens and %d reads, want 4 and 3", o, r)
	}
	if tree.Opens("devices/card/absent") != 0 || tree.Reads("devices/card/cancel") != 0 {
		t.Error("counted reads of a missing file")
	}
	want := []string{"open /sys/devices/card/cancel", "open /sys/devices/card/key", "open /sys/devices/card/state", "write /sys/devices/card/temp"}
	if got := tree.Violations(); !slices.Equal(got, want) {
		t.Errorf("violations %q", got)
	}
	tree.Forget()
	if tree.TotalReads() != 0 || len(tree.Opened()) != 0 || len(tree.Violations()) != 0 {
		t.Error("something is still counted")
	}
}

func TestMountedReadsBlock(t *testing.T) {
	tree, fs := mount(t, card)
	release := tree.Block("/sys/class/fpga/card0")
	got := make(chan string)
	go func() {
		s, err := fs.Read("class/fpga/card0/state")
		if err != nil {
			s = err.Error()
		}
		got <- s
	}()
	for tree.Reads("devices/card/state") == 0 { // the read has reached the kernel
		if _, err := fs.Names("devices/card"); err != nil { // others go on
			t.Fatal(err)
		}
	}
	select {
	case s := <-got:
		t.Fatalf("read %q through a closed gate", s)
	default:
	}
	tree.Set("devices/card/state", "write\n")
	release()
	release()
	if s := <-got; s != "write" {
		t.Errorf("read %q, want what stands there when the read goes on", s)
	}
}

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
