package dcgmfield

import (
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
)

//go:embed fields.tsv
var tsv string

// table is parsed on first use: most exporters never need it.
var table = sync.OnceValue(func() *index {
	x := &index{byName: map[string]int{}}
	for line := range strings.Lines(tsv) {
		if line[0] == '#' {
			continue
		}
		f, err := parseField(strings.TrimSuffix(line, "\n"))
		if err != nil {
			panic("dcgmfield: fields.tsv: " + err.Error())
		}
		x.add(f)
	}
	return x
})

// index is the table, sorted by id.
type index struct {
	fields []Field
	byName map[string]int
}

func (x *index) add(f Field) {
	at := len(x.fields)
	x.fields = append(x.fields, f)
	x.byName[f.Name] = at
	for _, n := range f.Former {
		x.byName[n] = at
	}
}

func parseField(line string) (Field, error) {
	cells := strings.Split(line, "\t")
	if len(cells) != 7 {
		return Field{}, fmt.Errorf("%d columns in %q, want 7", len(cells), line)
	}
	for i := range cells {
		if cells[i] == "-" {
			cells[i] = ""
		}
	}
	id, err := strconv.ParseUint(cells[0], 10, 16)
	if err != nil {
		return Field{}, err
	}
	f := Field{ID: uint16(id), Name: cells[1], Type: Type(cells[2]), Unit: cells[3], Kind: Kind(cells[4]), Entity: Entity(cells[5])}
	if cells[6] != "" {
		f.Former = strings.Split(cells[6], ",")
	}
	return f, nil
}

// ByName returns the field of that name, present or former.
func ByName(name string) (Field, bool) {
	x := table()
	at, ok := x.byName[name]
	if !ok {
		return Field{}, false
	}
	return x.fields[at], true
}

// ByID returns the field of that number.
func ByID(id uint16) (Field, bool) {
	x := table()
	at, ok := slices.BinarySearchFunc(x.fields, id, func(f Field, id uint16) int { return int(f.ID) - int(id) })
	if !ok {
		return Field{}, false
	}
	return x.fields[at], true
}

// All returns every field, by id.
func All() []Field { return slices.Clone(table().fields) }
