package faketree_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/accel-exporter/accel-exporter/collector/sysfs"
	"github.com/accel-exporter/accel-exporter/internal/sim/faketree"
)

func TestLoadEdits(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	write("card.txt", card)
	write("busy.txt", "#base\tcard.txt\n# comment\n#err\tEIO\t/sys/class/fpga/card0/temp\n/sys/class/fpga/card0/state\twrite\\n\n")
	file := write("moved.txt", "#base\tbusy.txt\n#rename\t/sys/devices/card\t/sys/devices/card1\n"+
		"/sys/class/fpga/card0 -> ../../devices/card1\n#remove\t/sys/class/fpga/card0/key\n/sys/other/card -> ../devices/card1/state\n")
	tree, err := faketree.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"/sys/class/fpga/card0", "/sys/devices/card1/afu_id", "/sys/devices/card1/cancel", "/sys/devices/card1/state",
		"/sys/devices/card1/temp", "/sys/other/card",
	}
	if d := cmp.Diff(want, tree.Paths()); d != "" {
		t.Error(d)
	}
	if got, _ := tree.Get("/sys/class/fpga/card0/state"); got != "write\n" || tree.Err("/sys/devices/card1/temp") != syscall.EIO {
		t.Errorf("state %q, temperature %v", got, tree.Err("/sys/devices/card1/temp"))
	}
	if !tree.Unplug("/sys/class/fpga/card0") || len(tree.Paths()) != 0 {
		t.Errorf("left after unplugging: %q", tree.Paths())
	}
	for text, want := range map[string]string{
		"#base\tcard.txt\n#remove\t/sys/nothing\n":               file + ":2: /sys/nothing: there is nothing of this path",
		"#base\tcard.txt\n\n#rename\t/sys/a\t/sys/b\n":           file + ":3: rename /sys/a: file does not exist",
		"#base\tcard.txt\n#base\tcard.txt\n":                     file + ":2: #base stands on the first line",
		"#base\tnone.txt\n":                                      file + ":1: open " + filepath.Join(dir, "none.txt") + ": no such file or directory",
		"#base\tcard.txt\n#rename\t/sys/devices\t/sys/devices/x": file + ":2: rename /sys/devices: /sys/devices/x lies in it",
	} {
		if _, err := faketree.Load(write("moved.txt", text)); err == nil || err.Error() != want {
			t.Errorf("%q:\n got %v\nwant %s", text, err, want)
		}
	}
	if _, err := faketree.Load(write("moved.txt", "#base\tmoved.txt\n")); err == nil {
		t.Error("an edit of itself was loaded")
	}
}

func TestMountedReadsOfWholeLines(t *testing.T) {
	tree, fs := mount(t, "#lines\t/sys/custat\n/sys/custat\taaaa\\nbbbb\\ncc\\n\n")
	fd, err := syscall.Open(fs.Path("custat"), syscall.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fd)
	var got []string
	for _, size := range []int{7, 4, 9, 9} {
		buf := make([]byte, size)
		n, err := syscall.Read(fd, buf)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, string(buf[:n]))
	}
	if d := cmp.Diff([]string{"aaaa\n", "", "bbbb\ncc\n", ""}, got); d != "" {
		t.Error(d)
	}
	if b, err := fs.ReadBytes("custat", sysfs.Page); string(b) != "aaaa\nbbbb\ncc\n" || tree.Reads("custat") != 5 {
		t.Errorf("%q, %v, %d reads", b, err, tree.Reads("custat"))
	}
}

// Whatever an edit does, a tree comes out that can be written and parsed.
func FuzzEdit(f *testing.F) {
	files, _ := filepath.Glob("../../../fixtures/trees/variants/*.txt")
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte("#rename\t/sys/devices/card\t/sys/class/fpga/card0/x\n#unplug\t/sys/class/fpga/card0\n/sys/class/fpga/card0/a -> ../..\n#dir\t/sys/d\n"))
	f.Add([]byte("#rename\t/sys/class/fpga/card0\t/sys/devices/card/loop\n/sys/devices/card/loop/loop/state\tx\n#remove\t/sys\n#block\t/sys\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		tree, err := faketree.Parse("card.txt", []byte(card))
		if err != nil {
			t.Fatal(err)
		}
		if tree.Edit("fuzz", data) != nil {
			return
		}
		survives(t, tree)
	})
}
