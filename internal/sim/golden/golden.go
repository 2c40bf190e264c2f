// Package golden compares the results of tests with golden files. It defines the
// flag -update of every test that imports it, and has the parts of a server that tests
// need in memory.
package golden

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/accel-exporter/accel-exporter/internal/config/strict"
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

// Matches reports whether got is the content of the file.
func Matches(file, got string) bool {
	want, err := os.ReadFile(file)
	return err == nil && string(want) == got
}

// Mistakes reads every file of testdata/broken and compares the errors of parse for
// it, which is what a person sees, with the file .err beside it.
func Mistakes[T any](t *testing.T, parse func(name string, data []byte) (*T, error)) {
	t.Helper()
	files, err := filepath.Glob("testdata/broken/*.[cy]*") // .csv, .yml
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
			Compare(t, strings.TrimSuffix(file, filepath.Ext(file))+".err", err.Error()+"\n")
		})
	}
}

// lineEnds are the ends of lines as YAML 1.1 has them.
var lineEnds = regexp.MustCompile("\r\n|[\r\n\u0085\u2028\u2029]")

// Refused checks that err is a list of mistakes in a file f.yml with this content:
// few, each on one line and with a line of the file.
func Refused(t *testing.T, err error, data []byte) {
	t.Helper()
	var mistakes strict.Mistakes
	if !errors.As(err, &mistakes) || len(mistakes) == 0 || len(mistakes) > 51 {
		t.Fatalf("error is %T: %v", err, err)
	}
	last := len(lineEnds.FindAllIndex(data, -1)) + 1
	for _, m := range mistakes {
		if s := m.Error(); m.Line < 1 || m.Line > last || m.Text == "" || strings.ContainsAny(s, "\n\r") || !strings.HasPrefix(s, fmt.Sprintf("f.yml:%d: ", m.Line)) {
			t.Errorf("line %d of %d: %q", m.Line, last, s)
		}
	}
}

// Cases plays each case of a file as a subtest and compares the results with those in
// the file. The lines before the first case are the head of the file. A case is the line
// "case NAME" and the lines up to the next case; lines that begin with "- " or "+ " are
// its results. play gets the other lines after the name, and returns them with the
// results of now.
func Cases(t *testing.T, file string, play func(t *testing.T, head, lines []string) []string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	head, cases, _ := strings.Cut(strings.TrimSpace(string(text)), "\ncase ")
	played := []string{strings.TrimSpace(head)}
	for c := range strings.SplitSeq(cases, "\ncase ") {
		lines := slices.DeleteFunc(strings.Split(strings.TrimSpace(c), "\n"), func(line string) bool {
			return strings.HasPrefix(line, "- ") || strings.HasPrefix(line, "+ ")
		})
		t.Run(lines[0], func(t *testing.T) {
			lines = append(lines[:1:1], play(t, strings.Split(head, "\n"), lines[1:])...)
		})
		played = append(played, strings.Join(lines, "\n"))
	}
	Compare(t, file, strings.Join(played, "\n\ncase ")+"\n")
}
