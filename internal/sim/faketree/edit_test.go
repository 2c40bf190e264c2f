package faketree_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/accel-exporter/accel-exporter/internal/sim/faketree"
)

func TestEditMistakes(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "moved.txt")
	write := func(file, text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(dir, "card.txt"), "/sys/devices/card/state\toperating\\n\n")
	for text, want := range map[string]string{
		"#base\tcard.txt\n#remove\t/sys/nothing\n":               file + ":2: /sys/nothing: there is nothing of this path",
		"#base\tcard.txt\n\n#rename\t/sys/a\t/sys/b\n":           file + ":3: rename /sys/a: file does not exist",
		"#base\tcard.txt\n#base\tcard.txt\n":                     file + ":2: #base stands on the first line",
		"#base\tnone.txt\n":                                      file + ":1: open " + filepath.Join(dir, "none.txt") + ": no such file or directory",
		"#base\tcard.txt\n#rename\t/sys/devices\t/sys/devices/x": file + ":2: rename /sys/devices: /sys/devices/x lies in it",
	} {
		write(file, text)
		if _, err := faketree.Load(file); err == nil || err.Error() != want {
			t.Errorf("%q:\n got %v\nwant %s", text, err, want)
		}
	}
	write(file, "#base\tmoved.txt\n")
	if _, err := faketree.Load(file); err == nil {
		t.Error("an edit of itself was loaded")
	}
}
