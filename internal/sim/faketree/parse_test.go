package faketree_test

import (
	"bytes"
	"os"
	"path"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/accel-exporter/accel-exporter/internal/sim/faketree"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestParse(t *testing.T) {
	tree, err := faketree.Parse("t", []byte("# a comment\n\n"+
		"/sys/a/text\ta\\tb\\\\\\0\\x7fc\\n\n/sys/a/empty\t\n/sys/l -> a\n#mode\t0644\t/sys/a/text\n"+
		"#err\tENODATA\t/sys/a/sensor\n#err\tEBUSY\t/sys/a/busy\n/sys/a/busy\tlater\\n\n#dir\t/proc/driver\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"/sys/a/busy", "/sys/a/empty", "/sys/a/sensor", "/sys/a/text", "/sys/l"}
	if d := cmp.Diff(want, tree.Paths()); d != "" {
		t.Error(d)
	}
	if got, ok := tree.Get("l/text"); got != "a\tb\\\x00\x7fc\n" || !ok {
		t.Errorf("text is %q, %t", got, ok)
	}
	if got, ok := tree.Get("a/busy"); got != "" || ok || tree.Err("a/busy") != syscall.EBUSY {
		t.Errorf("a busy file answers %q, %t, %v", got, ok, tree.Err("a/busy"))
	}
	tree.SetErr("a/busy", 0)
	if got, _ := tree.Get("a/busy"); got != "later\n" {
		t.Errorf("a file that is busy no more answers %q", got)
	}
	if !tree.Exists("/proc/driver") || tree.Err("a/sensor") != syscall.ENODATA {
		t.Error("the directory or the errno is missing")
	}
}

func TestParseMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"a\tb":                           `t:1: want an absolute path or a comment, found "a\tb"`,
		"\n/sys/a":                       `t:2: want path<TAB>content or path -> target, found "/sys/a"`,
		"/sys/../a\tb":                   `t:1: "/sys/../a" is no clean absolute path of at most 4095 bytes`,
		"/sys/a\t1\n/sys/a\t2":           `t:2: /sys/a stands on line 1 too`,
		"/sys/a/b\t1\n/sys/a\t2":         `t:2: /sys/a is a directory by another line`,
		"/sys/a\t1\n/sys/a/b\t2":         `t:2: /sys/a/b lies below /sys/a, which is no directory (line 1)`,
		"/sys/a\t\\q":                    `t:1: unknown escape \q; want one of \n \t \r \0 \\ \xNN`,
		"/sys/a\t\\x1":                   `t:1: unknown escape \x; want one of \n \t \r \0 \\ \xNN`,
		"#err\tEWHAT\t/sys/a":            `t:1: "EWHAT" is no errno that attributes are known to answer`,
		"#err\tEIO\t/sys/a\n/sys/a -> b": `t:1: #err of /sys/a, which is no file`,
		"#mode\t0999\t/sys/a\n/sys/a\t":  `t:1: "0999" is no mode from 0 to 0777 in octal`,
		"#mode\t0644":                    `t:1: want #mode<TAB>VALUE<TAB>PATH, found "#mode\t0644"`,
		"/sys/a\t1\n#remove\t/sys/a":     `t:2: #remove stands only in an edit, whose first line is #base`,
	} {
		_, err := faketree.Parse("t", []byte(text))
		if err == nil || err.Error() != want {
			t.Errorf("%q:\n got %v\nwant %s", text, err, want)
		}
	}
}

// survives checks that a tree that is written and parsed is the same.
func survives(t *testing.T, tree *faketree.Tree) {
	t.Helper()
	again, err := faketree.Parse("again", tree.Bytes())
	if err != nil {
		t.Fatalf("what was written does not parse: %v\n%s", err, tree.Bytes())
	}
	if d := cmp.Diff(string(tree.Bytes()), string(again.Bytes())); d != "" {
		t.Error(d)
	}
}

// Every tree of the repository survives being written. Trees that are no edits of
// another tree are found in their directory, byte by byte.
func TestFixtures(t *testing.T) {
	trees, _ := filepath.Glob("../../../fixtures/trees/*.txt")
	variants, _ := filepath.Glob("../../../fixtures/trees/variants/*.txt")
	if len(trees) < 6 || len(variants) < 20 {
		t.Fatalf("%d trees and %d variants", len(trees), len(variants))
	}
	for i, file := range append(trees, variants...) {
		tree, err := faketree.Load(file)
		if err != nil {
			t.Error(err)
			continue
		}
		if len(tree.Paths()) < 30 {
			t.Errorf("%s: %d paths", file, len(tree.Paths()))
		}
		survives(t, tree)
		for _, name := range tree.Paths() {
			if _, isLink := tree.Target(name); isLink && !tree.Exists(name) && path.Base(name) != "driver" {
				t.Errorf("%s: %s leads nowhere", file, name)
			}
		}
		if i >= len(trees) {
			continue
		}
		dir := t.TempDir()
		if err := tree.Write(dir); err != nil {
			t.Fatal(err)
		}
		for _, name := range tree.Paths() {
			at := filepath.Join(dir, name)
			if target, ok := tree.Target(name); ok {
				if got, err := os.Readlink(at); got != target {
					t.Errorf("%s: %q, %v", at, got, err)
				}
				continue
			}
			want, readable := tree.Get(name)
			got, err := os.ReadFile(at)
			if readable != (err == nil) || string(got) != want {
				t.Errorf("%s: %s: %q, %v; want %q", file, name, got, err, want)
			}
		}
	}
}

func FuzzParse(f *testing.F) {
	files, _ := filepath.Glob("../../../fixtures/trees/*.txt")
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		lines := bytes.SplitAfter(data, []byte("\n"))
		f.Add(bytes.Join(lines[:30], nil))
		f.Add(bytes.Join(lines[len(lines)-20:], nil))
	}
	f.Add([]byte("/sys/a\t\\x00\\0\n/sys/l -> ../a\n#err\tEIO\t/sys/e\n#dir\t/sys/d\n#block\t/sys/a\n#note\tsecret-never-open\t/sys/a\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		tree, err := faketree.Parse("fuzz", data)
		if err != nil {
			return
		}
		survives(t, tree)
	})
}
