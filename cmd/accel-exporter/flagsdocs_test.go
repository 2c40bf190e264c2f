package main

import (
	"bytes"
	"context"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kingpin/v2"
	"github.com/google/go-cmp/cmp"
)

// TestFlagsDocumented compares the flags of --help, of the exporter and of each
// command, with docs/flags.md.
func TestFlagsDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/flags.md")
	if err != nil {
		t.Fatal(err)
	}
	app := kingpin.New("accel-exporter", "")
	if err := new(flags).parse(app, nil, io.Discard, io.Discard); err != nil {
		t.Fatal(err)
	}
	var exporter []string
	for _, f := range app.Model().Flags {
		if !f.Hidden {
			exporter = append(exporter, f.Name)
		}
	}
	rest, _, _ := bytes.Cut(page, []byte("## Configuration file"))
	flags, commands, found := bytes.Cut(rest, []byte("## Commands"))
	if !found {
		t.Fatal("docs/flags.md has no section Commands")
	}
	flagsOf := func(words ...string) []string {
		text := help(t, words...)
		names := names(`(?m)^ {2,6}(?:-\w, +)?--(?:\[no-\])?([a-z][a-z0-9.-]*)`, text)
		if len(names) == 0 {
			t.Fatalf("no flag in %s", text)
		}
		return names
	}

	documented := names("`--([a-z][a-z0-9.-]*)`", flags)
	for _, name := range exporter {
		if !slices.Contains(documented, name) {
			t.Errorf("--%s is not in docs/flags.md", name)
		}
	}
	for _, name := range documented {
		if !slices.Contains(exporter, name) {
			t.Errorf("docs/flags.md lists --%s, which does not exist", name)
		}
	}

	// The flags of commands, with the commands that have them.
	have, lists := map[string]string{}, map[string]string{}
	var all []string
	for _, command := range commandNames() {
		parts := [][]string{{command}}
		if _, list, found := strings.Cut(string(help(t, command)), "\nCommands:\n"); found {
			parts = nil
			for _, name := range names(`(?m)^([a-z]+)`, []byte(list)) {
				if name != "help" {
					parts = append(parts, []string{command, name})
				}
			}
		}
		for _, words := range parts {
			name := strings.Join(words, " ")
			all = append(all, name)
			for _, flag := range flagsOf(words...) {
				if !slices.Contains(exporter, flag) {
					have[flag] = strings.TrimPrefix(have[flag]+", "+name, ", ")
				}
			}
		}
	}
	for _, row := range regexp.MustCompile("(?m)^\\| `--([a-z.-]+)` \\|[^|]*\\| ([^|]*) \\|").FindAllSubmatch(commands, -1) {
		of := strings.Split(strings.ReplaceAll(string(row[2]), "`", ""), ", ")
		slices.Sort(of)
		lists[string(row[1])] = strings.Join(of, ", ")
	}
	if diff := cmp.Diff(have, lists); diff != "" {
		t.Errorf("the commands have (-) and docs/flags.md lists (+)\n%s", diff)
	}
	listed := names("(?m)^\\| `([a-z]+(?: [a-z]+)?)[^`]*` \\|", commands)
	slices.Sort(listed)
	if diff := cmp.Diff(all, listed); diff != "" {
		t.Errorf("commands that exist (-) and that docs/flags.md lists (+)\n%s", diff)
	}
}

func help(t *testing.T, words ...string) []byte {
	t.Helper()
	var help, ignored bytes.Buffer
	if err := command(context.Background(), append(slices.Clone(words), "--help"), &help, &ignored); err != errDone {
		t.Fatalf("%q: %v", words, err)
	}
	return help.Bytes()
}

// names are what a pattern finds, each once.
func names(pattern string, text []byte) []string {
	found := map[string]bool{}
	for _, m := range regexp.MustCompile(pattern).FindAllSubmatch(text, -1) {
		found[string(m[1])] = true
	}
	return slices.Sorted(maps.Keys(found))
}
