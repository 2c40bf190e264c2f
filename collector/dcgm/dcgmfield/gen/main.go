// Command gen writes fields.tsv, the table of DCGM's fields, from NVIDIA's
// sources, which are not part of this repository: dcgm_fields.h and
// legacy_fields.csv of the Go module github.com/NVIDIA/go-dcgm, and
// src/dcgm_fields.cpp of DCGM, the only source of types and entities.
//
//	go run ./collector/dcgm/dcgmfield/gen -header H -source CPP -legacy CSV -out collector/dcgm/dcgmfield/fields.tsv
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
)

// head is the comment at the top of the table.
const head = `# Fields of DCGM: facts from go-dcgm v1.4611.0 (names, ids, former names) and
# DCGM 4.6.0 (types, entities, units), both Apache-2.0 (LICENSE-DCGM), written
# by collector/dcgm/dcgmfield/gen. What DCGM 4.6.11 added to 4.6.0 is typed by name.
# id	name	type	unit	kind	entity	former names
`

func main() {
	header := flag.String("header", "", "dcgm_fields.h")
	source := flag.String("source", "", "dcgm_fields.cpp")
	legacy := flag.String("legacy", "", "legacy_fields.csv")
	out := flag.String("out", "fields.tsv", "file to write")
	flag.Parse()
	if err := run(*header, *source, *legacy, *out); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func run(header, source, legacy, out string) error {
	var texts [3]string
	for i, path := range []string{header, source, legacy} {
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		texts[i] = string(data)
	}
	fields := parseHeader(texts[0])
	if len(fields) < 500 {
		return fmt.Errorf("%s: %d fields found, 500 or more are expected", header, len(fields))
	}
	meta := parseSource(texts[1], fields)
	addLegacy(fields, texts[2])

	var b bytes.Buffer
	b.WriteString(head)
	ids := make([]int, 0, len(fields))
	for id := range fields {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		f := fields[id]
		m := describe(f, meta[id])
		former := "-"
		if len(f.former) > 0 {
			slices.Sort(f.former)
			former = strings.Join(slices.Compact(f.former), ",")
		}
		fmt.Fprintf(&b, "%d\t%s\t%s\t%s\t%s\t%s\t%s\n", id, f.name, m.kindOfValue, m.unit, m.kind, m.entity, former)
	}
	return os.WriteFile(out, b.Bytes(), 0o644)
}
