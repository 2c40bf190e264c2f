package simtest

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/accel-exporter/accel-exporter/internal/sim/faketree"
)

// LoadTree returns a tree of the package's testdata/trees, or else of fixtures/trees,
// by its name without .txt.
func LoadTree(tb testing.TB, name string) *faketree.Tree {
	tb.Helper()
	if tree, ok := trees.Load(name); ok {
		return tree.(*faketree.Tree).Clone()
	}
	file := filepath.Join("testdata/trees", name+".txt")
	if _, err := os.Stat(file); err != nil {
		file = filepath.Join(fixtures(tb), "trees", name+".txt")
	}
	tree, err := faketree.Load(file)
	if err != nil {
		tb.Fatal(err)
	}
	trees.Store(name, tree)
	return tree.Clone()
}

// trees has each tree as it was parsed, by name.
var trees sync.Map

// MountTree mounts a tree until the test ends and returns the path of its /sys. The
// test is skipped where trees cannot be mounted.
func MountTree(tb testing.TB, tree *faketree.Tree) (sys string) {
	tb.Helper()
	if !faketree.CanMount() {
		tb.Skip("mounting a tree needs root and /dev/fuse")
	}
	dir := tb.TempDir()
	unmount, err := tree.Mount(dir)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(unmount)
	return filepath.Join(dir, "sys")
}

// WriteTree writes a tree to a directory of the test, as regular files and links,
// and returns the path of its /sys.
func WriteTree(tb testing.TB, tree *faketree.Tree) (sys string) {
	tb.Helper()
	dir := tb.TempDir()
	if err := tree.Write(dir); err != nil {
		tb.Fatal(err)
	}
	return filepath.Join(dir, "sys")
}

// fixtures searches the folder upwards from the package under test.
func fixtures(tb testing.TB) string {
	tb.Helper()
	at, err := os.Getwd()
	if err != nil {
		tb.Fatal(err)
	}
	for {
		dir := filepath.Join(at, "fixtures")
		if _, err := os.Stat(filepath.Join(dir, "trees")); err == nil {
			return dir
		}
		up := filepath.Dir(at)
		if up == at {
			tb.Fatal("no folder fixtures/trees above the package")
		}
		at = up
	}
}
