package faketree

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Write writes the tree to a directory: /sys/x as dir/sys/x, a regular file or
// a link. Existing files are replaced one by one, so a reader sees the old or
// the new content; other files in the directory remain. A file whose read fails
// is left out, because a regular file cannot fail; a file without a read bit is
// empty.
func (t *Tree) Write(dir string) error { return t.Sync(dir, nil) }

// Sync updates a directory with the content of the tree was to the tree t: it
// changes only what differs and removes what t no longer has.
func (t *Tree) Sync(dir string, was *Tree) error {
	before := map[string]shown{}
	if was != nil {
		before = was.shown()
	}
	now := t.shown()
	gone := make([]string, 0, len(before))
	for name, b := range before {
		if n, ok := now[name]; !ok || n.mode.Type() != b.mode.Type() {
			gone = append(gone, name)
		}
	}
	// The content of a directory is removed before the directory.
	slices.SortFunc(gone, func(a, b string) int { return strings.Compare(b, a) })
	for _, name := range gone {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	names := make([]string, 0, len(now))
	for name, n := range now {
		if b, ok := before[name]; !ok || b != n {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		if err := now[name].write(dir, name); err != nil {
			return err
		}
	}
	return nil
}

// shown is the form of an entry in a directory.
type shown struct {
	mode fs.FileMode
	text string // content or target
}

func (t *Tree) shown() map[string]shown {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := map[string]shown{}
	t.root.each(func(e *entry) {
		switch {
		case e.dir():
			out[e.path()] = shown{mode: fs.ModeDir | 0o755}
		case e.target != "":
			out[e.path()] = shown{fs.ModeSymlink, e.target}
		case e.errno == 0:
			out[e.path()] = shown{e.mode, e.content}
		}
	})
	return out
}

func (s shown) write(dir, name string) error {
	path := filepath.Join(dir, name)
	switch s.mode.Type() {
	case fs.ModeDir:
		return os.MkdirAll(path, s.mode.Perm())
	case fs.ModeSymlink:
		err := os.Symlink(s.text, path)
		if errors.Is(err, fs.ErrExist) {
			if err := os.Remove(path); err != nil {
				return err
			}
			err = os.Symlink(s.text, path)
		}
		return err
	}
	// With the rename a reader sees the whole old or the whole new content.
	aside := filepath.Join(dir, ".new")
	if err := os.Remove(aside); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.WriteFile(aside, []byte(s.text), s.mode); err != nil {
		return err
	}
	return os.Rename(aside, path)
}

// Bytes returns the tree as a tree file; Parse returns the same tree.
func (t *Tree) Bytes() []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	var head, body bytes.Buffer
	t.root.each(func(e *entry) {
		name := e.path()
		switch {
		case e.dir() && len(e.children) == 0 && e.up != nil:
			fmt.Fprintf(&body, "#dir\t%s\n", name)
		case e.dir():
		case e.target != "":
			fmt.Fprintf(&body, "%s -> %s\n", name, e.target)
		default:
			if e.errno != 0 {
				fmt.Fprintf(&head, "#err\t%s\t%s\n", unix.ErrnoName(e.errno), name)
			}
			if e.mode != 0o444 {
				fmt.Fprintf(&head, "#mode\t%04o\t%s\n", e.mode, name)
			}
			if e.errno == 0 || e.content != "" {
				body.WriteString(name + "\t" + escape(e.content) + "\n")
			}
		}
		for _, note := range e.notes {
			fmt.Fprintf(&head, "#note\t%s\t%s\n", note, name)
		}
		if e.lines {
			fmt.Fprintf(&head, "#lines\t%s\n", name)
		}
		for range t.blocks[name] {
			fmt.Fprintf(&head, "#block\t%s\n", name)
		}
	})
	return append(head.Bytes(), body.Bytes()...)
}

func escape(s string) string {
	var b strings.Builder
	for i := range len(s) {
		switch at := strings.IndexByte(escapeBytes, s[i]); {
		case at >= 0:
			b.WriteByte('\\')
			b.WriteByte(escapeNames[at])
		case s[i] < ' ' || s[i] >= 0x7f:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String()
}
