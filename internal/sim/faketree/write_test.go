package faketree_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/accel-exporter/accel-exporter/internal/sim/faketree"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// list returns all files and links below a directory with their content.
func list(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, _ := filepath.Rel(dir, path)
		if target, err := os.Readlink(path); err == nil {
			out[rel] = "-> " + target
			return nil
		}
		data, err := os.ReadFile(path)
		out[rel] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestWriteAndSync(t *testing.T) {
	tree, err := faketree.Parse("card.txt", []byte(card))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := tree.Write(dir); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"sys/class/fpga/card0": "-> ../../devices/card", "sys/devices/card/cancel": "", "sys/devices/card/key": "00ff\n",
		"sys/devices/card/state": "operating\n", "sys/devices/card/temp": "38000\n",
	}
	if d := cmp.Diff(want, list(t, dir)); d != "" {
		t.Error(d)
	}
	was := tree.Clone() // later changes do not affect it
	tree.Set("devices/card/afu_id", "33946d56\n")
	tree.SetErr("devices/card/state", syscall.EBUSY)
	tree.Link("class/fpga/card0", "../../devices/card2")
	if err := tree.Rename("devices/card", "devices/card2"); err != nil {
		t.Fatal(err)
	}
	tree.Link("devices/card", "card2")
	if err := tree.Sync(dir, was); err != nil {
		t.Fatal(err)
	}
	want = map[string]string{
		"sys/class/fpga/card0": "-> ../../devices/card2", "sys/devices/card2/cancel": "", "sys/devices/card2/key": "00ff\n",
		"sys/devices/card2/afu_id": "33946d56\n", "sys/devices/card2/temp": "38000\n", "sys/devices/card": "-> card2",
	}
	if d := cmp.Diff(want, list(t, dir)); d != "" {
		t.Error(d)
	}
}
