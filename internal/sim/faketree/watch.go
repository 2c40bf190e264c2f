package faketree

import (
	"path"
	"slices"
	"strings"
)

// Forbid declares files and directories that must not be opened: paths, or
// patterns of path.Match. Violations lists the opens. Files with a #note in the
// tree file, and files without a read bit, are forbidden from the start.
func (t *Tree) Forbid(paths ...string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, p := range paths {
		p = clean(p)
		if _, err := path.Match(p, "/"); err != nil {
			panic("faketree: " + p + ": " + err.Error())
		}
		t.forbidden = append(t.forbidden, p)
	}
}

// Violations returns what must not have been done to the mounted tree, one line
// each, sorted: "open PATH" of a forbidden file, "write PATH" of any.
func (t *Tree) Violations() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Sorted(slices.Values(t.violations))
}

// Opens returns how often a file or a directory has been opened since it was
// mounted, whether or not it could be read.
func (t *Tree) Opens(name string) int { return t.count(t.opens, name) }

// Reads returns the number of read(2) of a file since it was mounted. A read
// that blocks is counted at its start.
func (t *Tree) Reads(name string) int { return t.count(t.reads, name) }

// count also finds a removed file, by its former path.
func (t *Tree) count(of map[string]int, name string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.find(name, true); e != nil {
		return of[e.path()]
	}
	return of[clean(name)]
}

// Opened returns the paths that were opened since the tree was mounted, sorted.
func (t *Tree) Opened() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []string
	for p := range t.opens {
		out = append(out, p)
	}
	slices.Sort(out)
	return out
}

// TotalReads returns the number of read(2) of all files.
func (t *Tree) TotalReads() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := 0
	for _, m := range t.reads {
		n += m
	}
	return n
}

// Forget resets all counts and the list of violations.
func (t *Tree) Forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.opens)
	clear(t.reads)
	t.violations = nil
}

// opened records that an entry is opened, for writing or for reading.
func (t *Tree) opened(e *entry, write bool) {
	name := e.path()
	t.opens[name]++
	switch {
	case write:
		t.violations = append(t.violations, "write "+name)
	case t.isForbidden(e, name):
		t.violations = append(t.violations, "open "+name)
	}
}

func (t *Tree) isForbidden(e *entry, name string) bool {
	if !e.dir() && (e.mode&0o444 == 0 || len(e.notes) > 0) {
		return true
	}
	return slices.ContainsFunc(t.forbidden, func(p string) bool {
		ok, _ := path.Match(p, name) // checked by Forbid
		return ok
	})
}

// Block makes every read of a file, or of all files below a directory, block
// until release is called. A read of a mounted tree is then in the kernel, and
// only SIGKILL ends it, as with a driver that holds its lock. Unmounting ends
// it with EIO. Opening does not block.
func (t *Tree) Block(name string) (release func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := clean(name)
	if e := t.find(name, true); e != nil {
		at = e.path()
	}
	gate := t.block(at)
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if i := slices.Index(t.blocks[at], gate); i >= 0 {
			t.blocks[at] = slices.Delete(t.blocks[at], i, i+1)
			close(gate)
		}
	}
}

// block adds a gate to a path; there may be several.
func (t *Tree) block(at string) chan struct{} {
	gate := make(chan struct{})
	t.blocks[at] = append(t.blocks[at], gate)
	return gate
}

// blocked returns a gate at which reads of name wait, nil where there is none.
func (t *Tree) blocked(name string) chan struct{} {
	for at, gates := range t.blocks {
		if len(gates) > 0 && (name == at || strings.HasPrefix(name, strings.TrimSuffix(at, "/")+"/")) {
			return gates[0]
		}
	}
	return nil
}
