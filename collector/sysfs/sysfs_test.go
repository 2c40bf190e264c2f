package sysfs_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/accel-exporter/accel-exporter/collector/sysfs"
	"github.com/accel-exporter/accel-exporter/internal/sim/faketree"
	"github.com/accel-exporter/accel-exporter/internal/sim/simtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// written is a tree of regular files, which every machine supports.
func written(t *testing.T, text string) sysfs.FS {
	t.Helper()
	tree, err := faketree.Parse("t", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return sysfs.New(simtest.WriteTree(t, tree))
}

func TestRead(t *testing.T) {
	f := written(t, "/sys/a/plain\t 38000 \\n\n/sys/a/empty\t\n/sys/a/nul\tU250\\0\\n\\0\n/sys/a/lines\t300\\n500\\n\n/sys/b -> a\n/sys/self -> self\n")
	for _, tc := range []struct {
		name, want string
		errno      syscall.Errno
	}{
		{"a/plain", "38000", 0},
		{"b/plain", "38000", 0},
		{"a/empty", "", 0},
		{"a/nul", "U250", 0},
		{"a/lines", "300\n500", 0},
		{"a/absent", "", syscall.ENOENT},
		{"a", "", syscall.EISDIR},
		{"a/plain/x", "", syscall.ENOTDIR},
		{"self", "", syscall.ELOOP},
	} {
		got, err := f.Read(tc.name)
		if got != tc.want || sysfs.Errno(err) != tc.errno {
			t.Errorf("%s: %q, %v; want %q, %v", tc.name, got, err, tc.want, tc.errno)
		}
		if pe, ok := errors.AsType[*fs.PathError](err); tc.errno != 0 && (!ok || pe.Path != f.Path(tc.name)) {
			t.Errorf("%s: %v does not name the file", tc.name, err)
		}
	}
}

func TestNamesLinkExists(t *testing.T) {
	f := written(t, "/sys/a/2\t\n/sys/a/10\t\n/sys/a/driver -> ../bus/pci/drivers/dfl-pci\n#dir\t/sys/a/sub\n")
	if got, err := f.Names("a"); err != nil || !slices.Equal(got, []string{"10", "2", "driver", "sub"}) {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := f.Names("absent"); len(got) != 0 || sysfs.Errno(err) != syscall.ENOENT {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := f.Link("a/driver"); got != "dfl-pci" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := f.Link("a/2"); sysfs.Errno(err) != syscall.EINVAL {
		t.Errorf("a file is a link: %v", err)
	}
	if !f.Exists("a/driver") || !f.Exists("a/sub") || f.Exists("a/3") {
		t.Error("existence of a file is wrong")
	}
}

func TestResolve(t *testing.T) {
	f := written(t, "/sys/devices/card/id\t1\n/sys/class/card0 -> ../devices/card\n/sys/out -> ../proc\n/proc/x\t1\n/sys/gone -> devices/nothing\n")
	if got, err := f.Resolve("class/card0/id"); got != "devices/card/id" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := f.Resolve("out/x"); err == nil || !strings.Contains(err.Error(), "leads out of the tree") {
		t.Errorf("a link out of the tree: %v", err)
	}
	if _, err := f.Resolve("gone"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a link to nothing: %v", err)
	}
	// The root itself may be reached through a link.
	by := filepath.Join(t.TempDir(), "sys")
	if err := os.Symlink(f.Root(), by); err != nil {
		t.Fatal(err)
	}
	if got, err := sysfs.New(by).Resolve("class/card0"); got != "devices/card" || err != nil {
		t.Errorf("%q, %v through a link to the root", got, err)
	}
}

// What regular files do not have: errors of read(2), and a count of reads.
func TestMounted(t *testing.T) {
	tree, err := faketree.Parse("t", []byte("/sys/value\t1\\n\n/sys/busy\t1\\n\n/sys/link -> value\n#mode\t0200\t/sys/reset\n"))
	if err != nil {
		t.Fatal(err)
	}
	tree.Set("page", strings.Repeat("x", sysfs.Page))
	tree.Set("pages", strings.Repeat("x", 2*sysfs.Page+1))
	f := sysfs.New(simtest.MountTree(t, tree))
	for _, errno := range []syscall.Errno{
		syscall.EBUSY, syscall.ENODATA, syscall.EIO, syscall.ENODEV, syscall.ENOENT, syscall.EAGAIN, syscall.EOPNOTSUPP, syscall.EPERM, syscall.ETIMEDOUT,
	} {
		tree.Forget()
		tree.SetErr("busy", errno)
		_, err := f.Read("busy")
		if pe, ok := errors.AsType[*fs.PathError](err); !ok || pe.Op != "read" || sysfs.Errno(err) != errno {
			t.Errorf("%v became %v", errno, err)
		}
		// A driver that returns EAGAIN is not read again.
		if n := tree.Reads("busy"); n != 1 {
			t.Errorf("%v: %d reads", errno, n)
		}
	}
	if _, err := f.Read("reset"); sysfs.Errno(err) != syscall.EACCES {
		t.Errorf("a file that can only be written: %v", err)
	}
	tree.Forget()
	for range 3 {
		if _, err := f.Read("value"); err != nil {
			t.Error(err)
		}
	}
	f.Exists("value")
	if _, err := f.Link("link"); err != nil {
		t.Error(err)
	}
	if _, err := f.Names("."); err != nil {
		t.Error(err)
	}
	if _, err := f.ReadBytes("page", sysfs.Page); err != nil {
		t.Error(err)
	}
	if b, err := f.ReadBytes("pages", 4*sysfs.Page); err != nil || len(b) != 2*sysfs.Page+1 {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	for name, want := range map[string]int{"value": 3, "page": 1, "pages": 3, "busy": 0} {
		if got := tree.Reads(name); got != want {
			t.Errorf("%s: %d reads, want %d", name, got, want)
		}
	}
	if got := tree.Opens("value"); got != 3 {
		t.Errorf("%d opens, want 3: looking opens nothing", got)
	}
}

// A change of the device during a read reaches the reader as an errno.
func TestDeviceGoesWhileOpen(t *testing.T) {
	tree := faketree.New()
	tree.Set("devices/card/id", "1\n")
	f := sysfs.New(simtest.MountTree(t, tree))
	release := tree.Block("devices/card")
	got := make(chan error, 1)
	go func() {
		_, err := f.Read("devices/card/id")
		got <- err
	}()
	for tree.Reads("devices/card/id") == 0 {
		if _, err := f.Names("devices"); err != nil {
			t.Fatal(err)
		}
	}
	tree.Remove("devices/card")
	release()
	if err := <-got; sysfs.Errno(err) != syscall.ENODEV {
		t.Errorf("the device went: %v", err)
	}
}

// Addresses as the kernel writes them, and nothing else.
func TestPCIAddress(t *testing.T) {
	for s, want := range map[string]bool{
		"0000:1b:00.0": true, "10000:e1:1f.7": true, "ffffffff:ff:1f.7": true,
		"": false, "1b:00.0": false, "0000:1b:00": false, "0000:1b:00.8": false, "0000:1B:00.0": false, "0000:1b:00.0 ": false,
		"pci0000:17": false, "0000-1b-00.0": false, "../0000:1b:00.0": false, "000000000:1b:00.0": false,
		"bind": false, "new_id": false, "000g:1b:00.0": false, "fpga:1b:00.0": false,
	} {
		if sysfs.PCIAddress(s) != want {
			t.Errorf("%q: %v", s, !want)
		}
	}
}

// For any content of a file, a read returns it within the bounds.
func FuzzRead(f *testing.F) {
	f.Add([]byte("38000\n"), 4096)
	f.Add([]byte("\x00 \n\t"), 1)
	f.Add([]byte(strings.Repeat("ab\n", 5000)), 9000)
	dir := f.TempDir()
	root := sysfs.New(dir)
	f.Fuzz(func(t *testing.T, content []byte, limit int) {
		limit = max(0, min(limit, 1<<16))
		if err := os.WriteFile(root.Path("file"), content, 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := root.ReadBytes("file", limit)
		if err != nil || string(got) != string(content[:min(limit, len(content))]) {
			t.Errorf("%d bytes of %d within %d, %v", len(got), len(content), limit, err)
		}
		text, err := root.Read("file")
		if err != nil || text != strings.Trim(string(content[:min(sysfs.Page, len(content))]), "\x00 \t\r\n") {
			t.Errorf("%q, %v", text, err)
		}
	})
}
