package main

import (
	"bytes"
	"os"
	"regexp"
	"slices"
	"testing"
)

// TestFlagsDocumented compares the flags of --help with docs/flags.md.
func TestFlagsDocumented(t *testing.T) {
	var help, ignored bytes.Buffer
	_, _ = parseFlags([]string{"--help"}, &help, &ignored)
	page, err := os.ReadFile("../../docs/flags.md")
	if err != nil {
		t.Fatal(err)
	}
	page, _, _ = bytes.Cut(page, []byte("## Configuration file"))

	accepted := flagNames(`(?m)^ {2,6}(?:-\w, +)?--(?:\[no-\])?([a-z][a-z0-9.-]*)`, help.Bytes())
	if len(accepted) == 0 {
		t.Fatalf("no flag in %s", help.String())
	}
	documented := flagNames("`--([a-z][a-z0-9.-]*)`", page)
	for _, name := range accepted {
		if !slices.Contains(documented, name) {
			t.Errorf("--%s is not in docs/flags.md", name)
		}
	}
	for _, name := range documented {
		if !slices.Contains(accepted, name) {
			t.Errorf("docs/flags.md lists --%s, which does not exist", name)
		}
	}
}

func flagNames(pattern string, text []byte) (names []string) {
	for _, m := range regexp.MustCompile(pattern).FindAllSubmatch(text, -1) {
		names = append(names, string(m[1]))
	}
	return names
}
