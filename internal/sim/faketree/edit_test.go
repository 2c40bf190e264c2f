package faketree_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

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
