package faketree

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"

	"github.com/accel-exporter/accel-exporter/internal/sim/gpumetrics"
)

// Load parses the tree file at a path of the file system. A file whose first
// line is "#base<TAB>FILE" is an edit of another file, whose path is relative
// to it: see Edit.
func Load(file string) (*Tree, error) { return load(os.ReadFile, file, nil) }

// LoadFS is Load for another file system.
func LoadFS(fsys fs.FS, file string) (*Tree, error) {
	return load(func(name string) ([]byte, error) { return fs.ReadFile(fsys, name) }, file, nil)
}

// maxBases bounds the chain of edits.
const maxBases = 8

func load(read func(string) ([]byte, error), file string, above []string) (*Tree, error) {
	if len(above) > maxBases {
		return nil, fmt.Errorf("%s: more than %d edits stand on each other", above[0], maxBases)
	}
	data, err := read(file)
	if err != nil {
		return nil, err
	}
	rest, isEdit := strings.CutPrefix(string(data), "#base\t")
	if !isEdit {
		return Parse(file, data)
	}
	base, _, _ := strings.Cut(rest, "\n")
	t, err := load(read, path.Join(path.Dir(file), base), append(above, file))
	if err != nil {
		return nil, fmt.Errorf("%s:1: %w", file, err)
	}
	return t, t.Edit(file, data)
}

// Parse parses a tree file; name is used in the errors, which also have the
// line. A line is one of
//
//	/path<TAB>content            a file; \n \t \r \0 \\ and \xNN in content
//	/path -> target              a link
//	#err<TAB>ERRNO<TAB>/path     reading the file fails with ERRNO
//	#mode<TAB>octal<TAB>/path    permission bits other than 0444
//	#note<TAB>reason<TAB>/path   why opening the file does harm
//	#metrics<TAB>fields<TAB>/path a table of AMD's gpu_metrics: see gpumetrics.Build
//	#dir<TAB>/path               an empty directory
//	#block<TAB>/path             reading the file, or those below, blocks
//	#lines<TAB>/path             one read(2) returns whole lines only
//
// and other lines that begin with # are comments. Directories are implied. The
// order of lines does not matter, and a path may occur once. A file that only
// #err, #mode or #note names is empty.
func Parse(name string, data []byte) (*Tree, error) {
	statements, err := lex(name, data)
	if err != nil {
		return nil, err
	}
	p := parser{t: New(), lines: map[string]int{}}
	var mistakes []error
	// Files and links precede the directives about them.
	for _, properties := range []bool{false, true} {
		for _, s := range statements {
			isEntry := s.verb == "file" || s.verb == "link" || s.verb == "#dir"
			if isEntry == properties {
				continue
			}
			if err := p.do(s); err != nil {
				mistakes = append(mistakes, fmt.Errorf("%s:%d: %w", name, s.line, err))
			}
		}
	}
	if err := errors.Join(mistakes...); err != nil {
		return nil, err
	}
	return p.t, nil
}

type parser struct {
	t     *Tree
	lines map[string]int // line of each path
}

func (p *parser) do(s statement) error {
	switch s.verb {
	case "file", "link":
		e, err := p.add(s.line, s.path)
		if err != nil {
			return err
		}
		if s.verb == "link" {
			e.target, e.mode = s.value, 0o777
			return nil
		}
		e.content = s.value
		return nil
	case "#dir":
		_, err := p.above(path.Join(s.path, "x"))
		return err
	case "#base", "#remove", "#unplug", "#rename":
		return fmt.Errorf("%s stands only in an edit, whose first line is #base", s.verb)
	}
	e := p.t.find(s.path, false)
	if e == nil {
		var err error
		if e, err = p.add(s.line, s.path); err != nil {
			return err
		}
	}
	return p.t.property(e, s)
}

// property applies a directive to an entry. A file with an errno keeps its
// content.
func (t *Tree) property(e *entry, s statement) error {
	if s.verb != "#block" && (e.dir() || e.target != "") {
		return fmt.Errorf("%s of %s, which is no file", s.verb, s.path)
	}
	switch s.verb {
	case "#err":
		e.errno = errnos[s.value]
	case "#mode":
		mode, _ := strconv.ParseUint(s.value, 8, 32) // checked by lex
		e.mode = fs.FileMode(mode)
	case "#note":
		e.notes = append(e.notes, s.value)
	case "#lines":
		e.lines = true
	case "#metrics":
		table, _ := gpumetrics.Build(s.value) // checked by lex
		e.content = string(table)
	case "#block":
		t.block(e.path())
	}
	return nil
}

// add creates a new file where none exists.
func (p *parser) add(n int, name string) (*entry, error) {
	up, err := p.above(name)
	if err != nil {
		return nil, err
	}
	base := path.Base(name)
	if at, ok := p.lines[name]; ok {
		return nil, fmt.Errorf("%s stands on line %d too", name, at)
	}
	if up.children[base] != nil {
		return nil, fmt.Errorf("%s is a directory by another line", name)
	}
	p.lines[name] = n
	e := p.t.make(base, up)
	up.children[base] = e
	return e, nil
}

// above returns the directory of name. Unlike place it follows no link: a tree
// file has canonical paths.
func (p *parser) above(name string) (*entry, error) {
	at := p.t.root
	parts := strings.Split(name[1:], "/")
	for _, part := range parts[:len(parts)-1] {
		next := at.children[part]
		if next == nil {
			next = p.t.make(part, at)
			next.children, next.mode = map[string]*entry{}, 0o755
			at.children[part] = next
		}
		if !next.dir() {
			return nil, fmt.Errorf("%s lies below %s, which is no directory (line %d)", name, next.path(), p.lines[next.path()])
		}
		at = next
	}
	return at, nil
}
