package main

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/accel-exporter/accel-exporter/internal/sim/golden"
)

// TestGoldenMigrationFlags compares the table of dcgm-exporter's flags in the
// documentation with foreignFlags.
func TestGoldenMigrationFlags(t *testing.T) {
	const path = "../../docs/migrating-from-dcgm-exporter.md"
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	section := regexp.MustCompile(`(?s)(<!-- flags -->\n).*?(<!-- end of flags -->)`)
	m := section.FindStringSubmatch(string(data))
	if m == nil {
		t.Fatal("the page has no table of flags")
	}
	golden.Compare(t, path, strings.Replace(string(data), m[0], m[1]+flagTable(t)+m[2], 1))
}

// flagTable returns a table of the flags with the translation of an example.
func flagTable(t *testing.T) string {
	examples := map[string]string{"collect-interval": "5000", "log-format": "json", "collectors": "FILE"}
	var b strings.Builder
	b.WriteString("| dcgm-exporter | variable | here |\n|---|---|---|\n")
	for i := range foreignFlags {
		f := &foreignFlags[i]
		name, variable := "`--"+f.name+"`", "–"
		for _, s := range f.short {
			name += ", `-" + s + "`"
		}
		if f.env != "" {
			variable = "`" + f.env + "`"
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", name, variable, meaning(t, f, examples[f.name]))
	}
	return b.String()
}

func meaning(t *testing.T, f *foreignFlag, example string) string {
	if strings.HasPrefix(f.why, notNeeded) {
		return f.why
	} else if f.to == nil {
		return "no effect: " + f.why
	}
	value := example
	switch {
	case f.boolean && f.usual == "true":
		value = "false"
	case f.boolean:
		value = "true"
	case value == "":
		value = "VALUE"
	}
	c := &translation{exists: anyFile}
	flags, err := f.to(c, value)
	if err != nil {
		t.Fatal(f.name, err)
	}
	flags = slices.Clone(flags) // modified below
	for i := range flags {
		flags[i] = "`" + flags[i] + "`"
	}
	text := strings.Join(flags, " ")
	switch {
	case text == "":
		text = "the same"
	case f.boolean && f.usual == "true":
		text += " where it is false"
	case example != "" && example != "FILE":
		text += " for " + example
	}
	return text
}
