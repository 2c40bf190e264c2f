// Package golden compares the results of tests with golden files. It defines the
// flag -update of every test that imports it.
package golden

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files; review the diff")

// most bounds the diff that is shown, in bytes.
const most = 4000

// Compare fails the test where got differs from the file. With -update it
// writes the file first.
func Compare(tb testing.TB, file, got string) {
	tb.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			tb.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			tb.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		tb.Fatalf("%v; make golden writes it", err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		tb.Errorf("differs from %s (-want +got):\n%.*s", file, most, diff)
	}
}

// Matches reports whether got is the content of the file, or will be by -update.
func Matches(file, got string) bool {
	want, err := os.ReadFile(file)
	return *update || err == nil && string(want) == got
}

// Mistakes reads every testdata/broken/*.yml and compares the errors of parse for
// it, which is what a person sees, with the file .err beside it.
func Mistakes[T any](t *testing.T, parse func(name string, data []byte) (*T, error)) {
	t.Helper()
	files, err := filepath.Glob("testdata/broken/*.yml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			v, err := parse(filepath.Base(file), data)
			if err == nil {
				t.Fatal("accepted")
			}
			if v != nil {
				t.Error("a value beside an error")
			}
			Compare(t, strings.TrimSuffix(file, ".yml")+".err", err.Error()+"\n")
		})
	}
}
