package faketree

import (
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"
)

// Tree is a copy of a machine's /sys and /proc. Use New, Parse or Load; the
// zero value is invalid.
type Tree struct {
	mu     sync.Mutex
	root   *entry
	lastID uint64

	forbidden  []string
	opens      map[string]int
	reads      map[string]int
	violations []string
	blocks     map[string][]chan struct{}
	closed     chan struct{} // closed when a mount of the tree ends
	cached     map[place]cached
}

// place is a name in a directory.
type place struct {
	up   *entry
	name string
}

// cached is an entry that the kernel may have in its cache of names; forget removes it.
type cached struct {
	*entry
	forget func()
}

// entry is a directory, a link or a file.
type entry struct {
	id       uint64
	name     string
	up       *entry
	children map[string]*entry // of a directory, nil in all others
	target   string            // of a link, "" in all others
	content  string
	errno    syscall.Errno // the error of a read, 0 for none
	mode     fs.FileMode   // permission bits
	notes    []string
	lines    bool // one read returns whole lines only
}

// maxLinks is how many links one path may contain, as in the kernel.
const maxLinks = 40

// New returns an empty tree.
func New() *Tree {
	t := &Tree{opens: map[string]int{}, reads: map[string]int{}, blocks: map[string][]chan struct{}{}, closed: make(chan struct{})}
	t.root = t.make("", nil)
	t.root.children = map[string]*entry{}
	return t
}

// make returns a new file of the mode that sysfs gives an attribute.
func (t *Tree) make(name string, up *entry) *entry {
	t.lastID++
	return &entry{id: t.lastID, name: name, up: up, mode: 0o444}
}

// changed unlocks a tree that was changed. The kernel's next call sees the change: the
// kernel forgets the names that are gone or mean another entry. It may wait for an
// answer that needs the lock, so it is notified without.
func (t *Tree) changed() {
	var stale []func()
	for at, c := range t.cached {
		if at.up.children[at.name] != c.entry {
			stale = append(stale, c.forget)
			delete(t.cached, at)
		}
	}
	t.mu.Unlock()
	for _, forget := range stale {
		forget()
	}
}

// clean returns an absolute path.
func clean(name string) string {
	if !strings.HasPrefix(name, "/") {
		name = "/sys/" + name
	}
	return path.Clean(name)
}

func (e *entry) dir() bool { return e.children != nil }

func (e *entry) path() string {
	switch {
	case e.up == nil:
		return "/"
	case e.up.up == nil:
		return "/" + e.name
	}
	return e.up.path() + "/" + e.name
}

// find returns the entry at a path, nil where there is none. It follows a link
// in the last element only where last is true.
func (t *Tree) find(name string, last bool) *entry {
	budget := maxLinks
	return t.walk(t.root, clean(name), last, &budget)
}

func (t *Tree) walk(at *entry, name string, last bool, budget *int) *entry {
	if strings.HasPrefix(name, "/") {
		at = t.root
	}
	parts := strings.FieldsFunc(name, func(r rune) bool { return r == '/' })
	for i, part := range parts {
		switch {
		case at == nil || !at.dir():
			return nil
		case part == "..":
			if at.up != nil {
				at = at.up
			}
			continue
		case part == ".":
			continue
		}
		next := at.children[part]
		if next != nil && next.target != "" && (last || i < len(parts)-1) {
			if *budget--; *budget < 0 {
				return nil
			}
			next = t.walk(at, next.target, true, budget)
		}
		at = next
	}
	return at
}

// place returns the directory of name, created where missing, and the last
// element. It replaces files on the way.
func (t *Tree) place(name string) (*entry, string) {
	dir, base := path.Split(clean(name))
	if up := t.find(dir, true); up != nil && up.dir() {
		return up, base
	}
	at := t.root
	for part := range strings.FieldsFuncSeq(dir, func(r rune) bool { return r == '/' }) {
		next := at.children[part]
		if next != nil && next.target != "" {
			budget := maxLinks
			next = t.walk(at, next.target, true, &budget)
		}
		if next == nil || !next.dir() {
			next = t.make(part, at)
			next.children, next.mode = map[string]*entry{}, 0o755
			at.children[part] = next
		}
		at = next
	}
	return at, base
}

// file returns the file at a path, created where missing. It replaces a
// dangling link or a link to a directory.
func (t *Tree) file(name string) *entry {
	if e := t.find(name, true); e != nil && !e.dir() {
		return e
	}
	up, base := t.place(name)
	e := t.make(base, up)
	up.children[base] = e
	return e
}

// Get returns the content of a file; false where it does not exist or reading
// it fails.
func (t *Tree) Get(name string) (string, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.find(name, true)
	if e == nil || e.dir() || e.target != "" || e.errno != 0 {
		return "", false
	}
	return e.content, true
}

// Err returns the errno of reading a file, 0 where the read succeeds or there
// is no file.
func (t *Tree) Err(name string) syscall.Errno {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.find(name, true); e != nil {
		return e.errno
	}
	return 0
}

// Target returns where a link points; false where there is no link.
func (t *Tree) Target(name string) (string, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.find(name, false); e != nil && e.target != "" {
		return e.target, true
	}
	return "", false
}

// Exists reports whether name is a file, a directory, or a link to one.
func (t *Tree) Exists(name string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.find(name, true) != nil
}

// Real resolves the links in name; false where it leads nowhere.
func (t *Tree) Real(name string) (string, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.find(name, true); e != nil {
		return e.path(), true
	}
	return "", false
}

// Names returns the sorted names in a directory, nil where there is none.
func (t *Tree) Names(dir string) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.find(dir, true); e != nil {
		return slices.Sorted(maps.Keys(e.children))
	}
	return nil
}

// Paths returns the paths of all files and links, sorted.
func (t *Tree) Paths() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []string
	t.root.each(func(e *entry) {
		if !e.dir() {
			out = append(out, e.path())
		}
	})
	slices.Sort(out)
	return out
}

// each calls f for the entry and all below it, parents first, by name.
func (e *entry) each(f func(*entry)) {
	f(e)
	for _, name := range slices.Sorted(maps.Keys(e.children)) {
		e.children[name].each(f)
	}
}

// Clone returns a tree with the same files and blocks, without counts and
// forbidden paths.
func (t *Tree) Clone() *Tree {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := New()
	out.root = out.copy(t.root, nil)
	for at, gates := range t.blocks {
		for range gates {
			out.block(at)
		}
	}
	return out
}

// copy copies an entry of any tree to this one.
func (t *Tree) copy(e, up *entry) *entry {
	c := t.make(e.name, up)
	c.target, c.content, c.errno, c.mode, c.lines = e.target, e.content, e.errno, e.mode, e.lines
	c.notes = slices.Clone(e.notes)
	if e.dir() {
		c.children = make(map[string]*entry, len(e.children))
		for _, name := range slices.Sorted(maps.Keys(e.children)) {
			c.children[name] = t.copy(e.children[name], c)
		}
	}
	return c
}
