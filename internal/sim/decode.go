package sim

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// node is a part of a YAML file, with its path, so that every error can name
// file, line and key.
type node struct {
	*yaml.Node
	file, path string
}

func (n node) errorf(format string, args ...any) error {
	where := n.file + ":" + strconv.Itoa(n.Line)
	if n.path != "" {
		where += ": " + n.path
	}
	return fmt.Errorf(where+": "+format, args...)
}

// at returns the part of a node at the steps, keys and positions in lists. A part
// that is not in the file has the line of the part above it.
func (n node) at(steps ...any) node {
	for _, step := range steps {
		switch step := step.(type) {
		case int:
			n.path += fmt.Sprintf("[%d]", step)
			if n.Kind == yaml.SequenceNode && step < len(n.Content) {
				n.Node = n.Content[step]
			}
		case string:
			n.path = strings.TrimPrefix(n.path+"."+step, ".")
			if n.Kind != yaml.MappingNode {
				continue
			}
			for pair := range slices.Chunk(n.Content, 2) {
				if pair[0].Value == step {
					n.Node = pair[1]
					break
				}
			}
		}
	}
	return n
}

// onLine returns the part of a node that a line is about: of the keys and items
// that begin last before its end, the only one, and so on within that.
func (n node) onLine(line int) node {
	var step any
	last, alone := 0, false
	for i, c := range n.Content {
		isValue := n.Kind == yaml.MappingNode && i%2 == 1
		if isValue || c.Line > line {
			continue
		}
		last, alone, step = c.Line, c.Line > last, i
		if n.Kind == yaml.MappingNode {
			step = c.Value
		}
	}
	switch {
	case !alone:
		return n
	case n.Kind == yaml.MappingNode && last == line:
		return n.at(step)
	}
	return n.at(step).onLine(line)
}

// goType is the part of an error of yaml that names a type of this package.
var goType = regexp.MustCompile(` in type \S+$`)

// decode decodes a YAML file into a struct and returns its root. Unknown and
// repeated keys are errors.
func decode(file string, data []byte, into any) (node, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return node{}, fmt.Errorf("%s: %w", file, err)
	}
	d := yaml.NewDecoder(bytes.NewReader(data))
	d.KnownFields(true)
	err := d.Decode(into)
	if errors.Is(err, io.EOF) || len(doc.Content) != 1 {
		return node{}, fmt.Errorf("%s:1: the file is empty", file)
	}
	root := node{doc.Content[0], file, ""}
	mistakes, ok := errors.AsType[*yaml.TypeError](err)
	if !ok {
		return root, err
	}
	var all []error
	for _, text := range mistakes.Errors { // "line 4: field bord not found in type sim.gpuEntry"
		number, text, _ := strings.Cut(strings.TrimPrefix(text, "line "), ": ")
		line, _ := strconv.Atoi(number)
		at := root.onLine(line)
		at.Node = &yaml.Node{Line: line}
		all = append(all, at.errorf("%s", goType.ReplaceAllString(text, "")))
	}
	return root, errors.Join(all...)
}

// within checks a number.
func (n node) within(v, least, most int) error {
	if v < least || v > most {
		return n.errorf("want a whole number from %d to %d, found %d", least, most, v)
	}
	return nil
}

// oneOf checks a word.
func (n node) oneOf(word string, words []string) error {
	if !slices.Contains(words, word) {
		return n.errorf("want one of %s, found %q", strings.Join(words, ", "), word)
	}
	return nil
}

// matches checks a text.
func (n node) matches(text string, pattern *regexp.Regexp, what string) error {
	if !pattern.MatchString(text) {
		return n.errorf("want %s, found %q", what, text)
	}
	return nil
}

// or returns the value of an optional key.
func or[T any](given *T, fallback T) T {
	if given == nil {
		return fallback
	}
	return *given
}

// fixtureNames returns the names of the files that match a pattern, without their
// extension.
func fixtureNames(fixtures fs.FS, pattern string) []string {
	files, _ := fs.Glob(fixtures, pattern) // the pattern is well formed
	for i, f := range files {
		files[i] = strings.TrimSuffix(filepath.Base(f), filepath.Ext(f))
	}
	return files
}
