package counters

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/accel-exporter/accel-exporter/collector/dcgm/dcgmfield"
	"github.com/accel-exporter/accel-exporter/internal/config/strict"
	"github.com/accel-exporter/accel-exporter/internal/config/strict/wording"
)

// Bounds of a counters file. A field occurs once, which bounds the rows.
const (
	maxSize     = 1 << 20 // bytes
	maxMistakes = 100     // reading stops after this many
	maxUnknown  = 1000    // rows with an unknown field
)

// fieldName matches a name that may be a field of another release of DCGM.
var fieldName = regexp.MustCompile(`^(DCGM|dcgm)_[A-Za-z0-9_]{1,120}$`)

// columns describes a row.
const columns = "three columns, DCGM_FIELD, TYPE, HELP, the help in double quotes where it has a comma"

// Parse reads a counters file of dcgm-exporter; file is its name in messages.
// Empty lines and lines that begin with # are comments. Blanks around cells,
// CRLF and a byte order mark are accepted. The error is of type strict.Mistakes.
func (r Release) Parse(file string, data []byte) (*File, error) {
	p := parser{file: file, release: r, seen: map[uint16]int{}, named: map[string]int{}}
	if len(data) > maxSize {
		p.mistake(1, 1, "%d bytes; up to %d are accepted", len(data), maxSize)
		return nil, p.mistakes
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	number := 0
	for line := range bytes.Lines(data) {
		number++
		if len(p.mistakes) >= maxMistakes {
			break
		}
		p.line(number, strings.TrimRight(string(line), "\r\n"))
	}
	if len(p.mistakes) > 0 {
		return nil, p.mistakes
	}
	switch {
	case len(p.out.Rows)+len(p.out.Skipped) == 0:
		p.mistake(1, 1, "no row; one or more are accepted, each with %s", columns)
		return nil, p.mistakes
	case len(p.out.Rows) == 0 && len(p.out.Unread) == len(p.out.Skipped):
		return nil, p.out.Unread
	}
	return &p.out, nil
}

type parser struct {
	file     string
	release  Release
	out      File
	mistakes strict.Mistakes
	seen     map[uint16]int // line by field
	named    map[string]int // line by name that is no field
}

func (p *parser) mistake(line, column int, format string, args ...any) {
	p.mistakes = append(p.mistakes, p.at(line, column, format, args...))
}

func (p *parser) at(line, column int, format string, args ...any) strict.Mistake {
	return strict.Mistake{File: p.file, Line: line, Column: column, Text: fmt.Sprintf(format, args...)}
}

// leave leaves out a row whose field is not known.
func (p *parser) leave(r *Row, c cell, reason, format string, args ...any) {
	p.out.Skipped = append(p.out.Skipped, Skipped{r.Line, r.Name, reason})
	p.out.Unread = append(p.out.Unread, p.at(r.Line, c.column, format, args...))
}

func (p *parser) line(number int, text string) {
	if bare := strings.TrimSpace(text); bare == "" || bare[0] == '#' {
		return
	}
	if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		p.mistake(number, 1, "not UTF-8 text")
		return
	}
	r := csv.NewReader(strings.NewReader(text))
	r.TrimLeadingSpace, r.FieldsPerRecord = true, -1
	fields, err := r.Read()
	if bad, ok := errors.AsType[*csv.ParseError](err); ok {
		p.mistake(number, bad.Column, "%v; accepted is a cell that is quoted as a whole, with quotes doubled", bad.Err)
		return
	}
	cells := make([]cell, len(fields))
	for i, text := range fields {
		_, column := r.FieldPos(i)
		cells[i] = cell{strings.TrimSpace(text), column}
	}
	if n := len(cells); n != 3 {
		p.mistake(number, cells[min(n-1, 3)].column, "%d columns; accepted are %s", n, columns)
		return
	}
	p.row(number, cells)
}

// cell is one cell of a row and the column of its first byte, from 1.
type cell struct {
	text   string
	column int
}

// row adds a row of three cells.
func (p *parser) row(number int, cells []cell) {
	before := len(p.mistakes)
	r := Row{Line: number, Name: cells[0].text, Help: cells[2].text}
	if !p.name(&r, cells[0]) {
		return
	}
	skip := ""
	switch t := Type(cells[1].text); t {
	case Gauge, Counter, Label:
		r.Declared = t
	case "histogram", "summary":
		skip = SkipType
	default:
		p.mistake(number, cells[1].column, "type %s; accepted are gauge, counter and label", wording.Quote(cells[1].text))
	}
	if len(p.mistakes) > before {
		return
	}
	if !r.Derived {
		if r.Field.Kind == dcgmfield.None {
			skip = SkipBinary
		}
		if r.Field.Kind == dcgmfield.Info && r.Declared != Label && skip == "" {
			p.mistake(number, cells[1].column, "type %s for a text; accepted is label", wording.Quote(cells[1].text))
			return
		}
	}
	if skip != "" {
		p.out.Skipped = append(p.out.Skipped, Skipped{number, r.Name, skip})
		return
	}
	r.Type = r.Declared
	if r.Type == Counter && !r.Derived && r.Field.Kind != dcgmfield.Counter {
		r.Type = Gauge
	}
	p.out.Rows = append(p.out.Rows, r)
}

// name finds the field of a row. It returns false for a row that is left out.
func (p *parser) name(r *Row, c cell) bool {
	f, ok := dcgmfield.ByName(r.Name)
	r.Derived = slices.Contains(derived, r.Name)
	switch {
	case ok:
		return p.field(r, c, f)
	case !r.Derived && !fieldName.MatchString(r.Name):
		p.mistake(r.Line, c.column, "field %s; accepted is a field of DCGM", wording.Quote(r.Name))
		return true
	}
	if first := p.named[r.Name]; first > 0 {
		p.mistake(r.Line, c.column, "%s is already in line %d", r.Name, first)
		return true
	}
	p.named[r.Name] = r.Line
	switch {
	case r.Derived:
		return true
	case len(p.out.Unread) >= maxUnknown:
		p.mistake(r.Line, c.column, "field %s; up to %d unknown fields are accepted", wording.Quote(r.Name), maxUnknown)
		return true
	}
	p.leave(r, c, SkipUnknown, "field %s is not in DCGM up to 4.7%s", wording.Quote(r.Name), alike(r.Name))
	return false
}

// field sets the field of a row.
func (p *parser) field(r *Row, c cell, f dcgmfield.Field) bool {
	switch {
	case r.Name == utilRatio && p.release == Unstated:
		p.leave(r, c, SkipAmbiguous, "%s is a percentage up to dcgm-exporter 4.8 and a ratio since 4.9; set --compat.release=4.8 or --compat.release=4.9", utilRatio)
		return false
	case r.Name == utilRatio && p.release == Release48:
		f, _ = dcgmfield.ByName("DCGM_FI_DEV_GPU_UTIL")
	}
	if first := p.seen[f.ID]; first > 0 {
		p.mistake(r.Line, c.column, "%s is field %d, which is already in line %d", r.Name, f.ID, first)
	}
	p.seen[f.ID] = r.Line
	r.Field = f
	return true
}

// alike suggests the field that an unknown name resembles most. More than two
// different letters are another field: ENC_UTIL is not GPU_UTIL.
func alike(name string) string {
	var names []string
	for _, f := range dcgmfield.All() {
		names = append(append(names, f.Name), f.Former...)
	}
	for _, near := range wording.Nearest(strings.ToUpper(name), names, 1) {
		if wording.Distance(strings.ToUpper(name), strings.ToUpper(near)) <= 2 {
			return ", perhaps " + near
		}
	}
	return ""
}
