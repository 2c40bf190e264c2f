// Package strict decodes YAML files written by people. A file is applied
// completely or not at all: every mistake is reported with its line, the path of
// its key, the value found and the accepted values.
//
// The form of a file is a struct with yaml tags. The tag accept gives the range
// of a number or duration as "low..high" and the accepted texts of a string as
// "one|two", or as "scalar" for every value; a type with its own syntax implements
// encoding.TextUnmarshaler, a section with its own rules Checker. A field of an
// interface type holds a pointer to the struct of its section; while it is nil the
// section is accepted unread.
package strict

import (
	"bytes"
	"encoding"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/accel-exporter/accel-exporter/internal/config/strict/wording"
)

// Limits per file: of the reported mistakes, and of the visited values, which
// bounds the expansion of aliases.
const (
	maxMistakes = 50
	maxValues   = 100_000
)

// MaxSize is the size in bytes of the largest file that is accepted.
const MaxSize = 1 << 20

// Checker is a section whose fields depend on each other. Check is called after
// the section has been decoded without a mistake. Its error contains the value
// found and the accepted values, and with At the part of the section. Joined errors are
// several mistakes.
type Checker interface{ Check() error }

// Decode decodes the content of a file into the struct that into points to, which
// contains the defaults; name is the file name in errors. The error is of type
// Mistakes; into must not be used after an error.
func Decode(name string, data []byte, into any) error {
	d := &decoder{file: name}
	if len(data) > MaxSize {
		d.mistake(1, "", "found more than %d bytes; accepted is a file of at most that size", MaxSize)
	} else if root := d.document(data); root != nil {
		d.value(root, "", reflect.ValueOf(into).Elem(), "")
	}
	if len(d.mistakes) > 0 {
		return d.sorted()
	}
	return nil
}

// Position has the place of a section in the file; the section's struct embeds it.
type Position struct {
	// Line counts from 1.
	Line int
}

func (p *Position) locate(n *yaml.Node) { p.Line = n.Line }

type decoder struct {
	file     string
	mistakes Mistakes
	values   int
	shapes   map[reflect.Type]shape
}

// shape is the structure of a section: its sorted keys and the field of each.
type shape struct {
	keys   []string
	fields map[string]reflect.StructField
}

func (d *decoder) mistake(line int, path, format string, args ...any) {
	d.mistakes = append(d.mistakes, Mistake{File: d.file, Line: max(line, 1), Path: path, Text: fmt.Sprintf(format, args...)})
}

func (d *decoder) sorted() Mistakes {
	m := d.mistakes
	slices.SortStableFunc(m, func(a, b Mistake) int { return a.Line - b.Line })
	if more := len(m) - maxMistakes; more > 0 {
		m = append(m[:maxMistakes], Mistake{File: d.file, Line: m[maxMistakes].Line, Text: fmt.Sprintf("and %d more mistakes from here on", more)})
	}
	return m
}

// document returns the root of the only document in data, nil if it is empty or
// invalid.
func (d *decoder) document(data []byte) *yaml.Node {
	docs, err := split(data)
	switch {
	case err != nil:
		text, line := syntaxText(err)
		if at := broken(data); at > 0 {
			line = at
		}
		if bad := bytes.Split(data, []byte("\n")); line > 0 && line <= len(bad) && bytes.HasPrefix(bytes.TrimLeft(bad[line-1], " "), []byte("\t")) {
			text = "found a tab at the start of the line; accepted are spaces"
		}
		d.mistake(line, "", "is not YAML: %s", text)
	case len(docs) > 1:
		d.mistake(docs[1].Line, "", "found a second document; accepted is one")
	case len(docs) == 1:
		return docs[0].Content[0]
	}
	return nil
}

// split parses up to two documents.
func split(data []byte) (docs []*yaml.Node, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the parser gave up: %v", r)
		}
	}()
	for dec := yaml.NewDecoder(bytes.NewReader(data)); len(docs) < 2; {
		var doc yaml.Node
		if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		docs = append(docs, &doc)
	}
	return docs, nil
}

func syntaxText(err error) (text string, line int) {
	text = err.Error()
	syntaxError := regexp.MustCompile(`^yaml: (?:line (\d+): )?`)
	if m := syntaxError.FindStringSubmatch(text); m != nil {
		line, _ = strconv.Atoi(m[1])
		text = text[len(m[0]):]
	}
	if strings.HasPrefix(text, "unknown anchor ") {
		text = "found a reference to an unknown anchor" // its name may be a secret
	}
	return text, line
}

// broken returns the line at which data stops being valid YAML: the one after the
// longest valid prefix. The parser only reports the line of the block around the
// mistake. It returns 0 if the search is too expensive.
func broken(data []byte) int {
	budget := 256 << 10 // bytes to parse
	lines := bytes.SplitAfter(data, []byte("\n"))
	for n, end := len(lines), len(data); n > 0; n-- {
		end -= len(lines[n-1])
		if budget -= end; budget < 0 {
			return 0
		}
		if _, err := split(data[:end]); err != nil {
			continue
		}
		for n < len(lines) && len(bytes.TrimSpace(lines[n-1])) == 0 {
			n++
		}
		return n
	}
	return 1
}

// value decodes n into v. accept is the range in the tag of v.
func (d *decoder) value(n *yaml.Node, path string, v reflect.Value, accept string) {
	if d.values++; d.values > maxValues {
		if d.values == maxValues+1 {
			d.mistake(n.Line, path, "found more than %d values, aliases included; accepted are at most that many", maxValues)
		}
		return
	}
	n = target(n)
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" && (v.Kind() == reflect.Struct || v.Kind() == reflect.Slice || v.Kind() == reflect.Map) && !isText(v) {
		return // a section or list whose content is commented out
	}
	switch {
	case v.Kind() == reflect.Interface:
		if !v.IsNil() {
			d.value(n, path, v.Elem().Elem(), accept)
		}
	case isText(v) || isLeaf(v):
		if text := d.scalar(n, v, accept); text != "" {
			d.mistake(n.Line, path, "%s", text)
		}
	case v.Kind() == reflect.Struct:
		d.section(n, path, v)
	case v.Kind() == reflect.Slice:
		d.list(n, path, v, accept)
	case v.Kind() == reflect.Map:
		d.table(n, path, v, accept)
	default:
		panic("strict: no decoder for " + v.Type().String())
	}
}

// keyName matches keys that a message repeats. Another key may be a line of a file that was
// given by mistake, such as /etc/shadow, and must not get into a log.
var keyName = regexp.MustCompile(`^([A-Za-z_][\w.-]{0,39}|<<)$`)

func (d *decoder) section(n *yaml.Node, path string, v reflect.Value) {
	s := d.shapeOf(v.Type())
	accepted := strings.Join(s.keys, ", ")
	if n.Kind != yaml.MappingNode {
		is := found(n)
		if path == "" && n.Kind == yaml.ScalarNode {
			is = "text" // perhaps the content of a file that was given by mistake
		}
		d.mistake(n.Line, path, "found %s; accepted is a mapping with the keys %s", is, accepted)
		return
	}
	if p, ok := reflect.TypeAssert[interface{ locate(*yaml.Node) }](v.Addr()); ok {
		p.locate(n)
	}
	seen := map[string]int{}
	before := len(d.mistakes)
	for pair := range slices.Chunk(n.Content, 2) {
		key, val := pair[0], pair[1]
		if key.Kind != yaml.ScalarNode {
			d.mistake(key.Line, path, "found %s as a key; accepted here: %s", found(key), accepted)
			continue
		}
		at := join(path, key.Value)
		field, known := s.fields[key.Value]
		first, again := seen[key.Value]
		switch {
		case !known && !keyName.MatchString(key.Value):
			d.mistake(key.Line, path, "found a key that is not a name; accepted here: %s", accepted)
		case !known:
			d.mistake(key.Line, at, "unknown key; accepted here: %s", accepted)
		case again:
			d.mistake(key.Line, at, "found a second time, first on line %d; accepted is once", first)
		default:
			seen[key.Value] = key.Line
			d.value(val, at, v.Field(field.Index[0]), field.Tag.Get("accept"))
		}
	}
	if c, ok := reflect.TypeAssert[Checker](v.Addr()); ok && len(d.mistakes) == before {
		if err := c.Check(); err != nil {
			d.refuse(err, n, path)
		}
	}
}

// target resolves an alias.
func target(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// refuse records the error of a Checker, at the part of n that it names.
func (d *decoder) refuse(err error, n *yaml.Node, path string) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			d.refuse(e, n, path)
		}
		return
	}
	var at *atError
	for rest := err; errors.As(rest, &at); rest = at.error {
		for _, s := range at.steps {
			n, path = step(n, path, s)
		}
	}
	d.mistake(n.Line, path, "%s", err)
}

// join returns the path of a key below path.
func join(path, key string) string { return strings.TrimPrefix(path+"."+cut(key), ".") }

// table decodes a mapping with free keys.
func (d *decoder) table(n *yaml.Node, path string, v reflect.Value, accept string) {
	if n.Kind != yaml.MappingNode {
		d.mistake(n.Line, path, "found %s; accepted is a mapping", found(n))
		return
	}
	v.Set(reflect.MakeMap(v.Type()))
	seen := map[string]int{}
	for pair := range slices.Chunk(n.Content, 2) {
		key, val := pair[0], pair[1]
		if key.Kind != yaml.ScalarNode || key.Value == "" {
			d.mistake(key.Line, path, "found %s as a key; accepted is text", found(key))
			continue
		}
		at := join(path, key.Value)
		if first, again := seen[key.Value]; again {
			d.mistake(key.Line, at, "found a second time, first on line %d; accepted is once", first)
			continue
		}
		seen[key.Value] = key.Line
		e := reflect.New(v.Type().Elem()).Elem()
		d.value(val, at, e, accept)
		v.SetMapIndex(reflect.ValueOf(key.Value), e)
	}
}

func (d *decoder) list(n *yaml.Node, path string, v reflect.Value, accept string) {
	if n.Kind != yaml.SequenceNode {
		d.mistake(n.Line, path, "found %s; accepted is a list", found(n))
		return
	}
	list := reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content))
	seen := map[string]int{}
	for i, e := range n.Content {
		at := fmt.Sprintf("%s[%d]", path, i)
		if e.Kind == yaml.ScalarNode && e.ShortTag() == "!!null" && list.Index(i).Kind() == reflect.Struct && !isText(list.Index(i)) {
			d.mistake(e.Line, at, "found no value; accepted is a mapping")
			continue
		}
		d.value(e, at, list.Index(i), accept)
		if e.Kind != yaml.ScalarNode {
			continue
		}
		if first, again := seen[e.Value]; again {
			d.mistake(e.Line, at, "found %s a second time, first on line %d; accepted is once", wording.Quote(e.Value), first)
		} else {
			seen[e.Value] = e.Line
		}
	}
	v.Set(list)
}

// scalar decodes a single value and returns a description of its mistake, if any.
func (d *decoder) scalar(n *yaml.Node, v reflect.Value, accept string) string {
	if isText(v) {
		if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str" && accept != "scalar" {
			return fmt.Sprintf("found %s; accepted is text", found(n))
		}
		if err := v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(n.Value)); err != nil {
			return err.Error()
		}
		return ""
	}
	wanted, tag := "text", "!!str"
	ok := func(string) bool { return true }
	switch v.Interface().(type) {
	case time.Duration:
		wanted = Durations
		ok = func(s string) bool {
			t, err := ParseDuration(s)
			v.SetInt(int64(t))
			return err == nil && within(t, accept, ParseDuration)
		}
	case int:
		wanted, tag = "a whole number", "!!int"
		ok = func(s string) bool {
			i, err := whole(s)
			v.SetInt(int64(i))
			return err == nil && within(i, accept, whole)
		}
	case bool:
		wanted, tag = "true or false", "!!bool"
		ok = func(s string) bool {
			v.SetBool(s == "true")
			return s == "true" || s == "false"
		}
	case float64:
		wanted, tag = "a number", n.ShortTag()
		ok = func(s string) bool {
			f, err := number(s)
			v.SetFloat(f)
			return (tag == "!!int" || tag == "!!float") && err == nil && within(f, accept, number)
		}
	case string:
		if accept == "scalar" {
			accept, tag = "", n.ShortTag()
		}
		ok = func(s string) bool {
			v.SetString(s)
			return accept == "" || slices.Contains(strings.Split(accept, "|"), s)
		}
	}
	if low, high, isRange := strings.Cut(accept, ".."); isRange {
		wanted += ", from " + low + " to " + high
	} else if accept != "" {
		wanted = "one of " + strings.ReplaceAll(accept, "|", ", ")
	}
	if n.Kind != yaml.ScalarNode || n.ShortTag() != tag || !ok(n.Value) {
		return fmt.Sprintf("found %s; accepted is %s", found(n), wanted)
	}
	return ""
}

// whole parses an unambiguous number: decimal, without a leading zero, which YAML
// reads as octal.
func whole(s string) (int, error) {
	i, err := strconv.Atoi(s)
	if err == nil && strconv.Itoa(i) != s {
		err = strconv.ErrSyntax
	}
	return i, err
}

func number(s string) (float64, error) { return strconv.ParseFloat(s, 64) }

// within reports whether x lies in the range "low..high", both included.
func within[T int | float64 | time.Duration](x T, accept string, parse func(string) (T, error)) bool {
	if accept == "" {
		return true
	}
	low, high, _ := strings.Cut(accept, "..")
	from, err1 := parse(low)
	to, err2 := parse(high)
	if err1 != nil || err2 != nil {
		panic("strict: bad tag accept: " + accept)
	}
	return x >= from && x <= to
}

func isText(v reflect.Value) bool {
	return v.Addr().Type().Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

func isLeaf(v reflect.Value) bool {
	switch v.Interface().(type) {
	case time.Duration, int, float64, bool, string:
		return true
	}
	return false
}

func (d *decoder) shapeOf(t reflect.Type) shape {
	if s, ok := d.shapes[t]; ok {
		return s
	}
	s := shape{fields: map[string]reflect.StructField{}}
	for f := range t.Fields() {
		key, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if key == "" {
			continue // not in the file
		}
		s.fields[key] = f
		s.keys = append(s.keys, key)
	}
	slices.Sort(s.keys)
	if d.shapes == nil {
		d.shapes = map[reflect.Type]shape{}
	}
	d.shapes[t] = s
	return s
}

// found describes a node.
func found(n *yaml.Node) string {
	n = target(n)
	switch {
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.ShortTag() == "!!null":
		return "no value"
	case n.ShortTag() == "!!str":
		return wording.Quote(n.Value)
	}
	kind, known := map[string]string{"!!int": "number", "!!float": "number", "!!bool": "boolean", "!!timestamp": "date"}[n.ShortTag()]
	if !known {
		kind = "tag " + cut(n.ShortTag()) + " with"
	}
	return "the " + kind + " " + cut(n.Value)
}

// cut returns s shortened for a message, on one line.
func cut(s string) string {
	if q := wording.Quote(s); q != `"`+s+`"` || strings.ContainsAny(s, ". ") {
		return q
	}
	return s
}
