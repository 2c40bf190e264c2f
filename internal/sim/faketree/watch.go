package faketree

import (
	"path"
	"slices"
	"strings"
)

// Forbid names files and directories that nobody may open: paths, or patterns
// as path.Match has them. Whoever opens one nevertheless stands in Violations.
// Files that have a #note in the tree file, and files that have no read bit,
// are forbidden from the start.
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

// Violations returns what was done to the mounted tree that must never be, one
// line each, sorted: "open PATH" of a forbidden file, "write PATH" of any.
func (t *Tree) Violations() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Sorted(slices.Values(t.violations))
}

// Opens returns how often a file or a directory was opened since it was
// mounted, whether or not it could be read.
func (t *Tree) Opens(name string) int { return t.count(t.opens, name) }

// Reads returns how many read(2) a file has answered since it was mounted.
// One that blocks counts when it begins.
func (t *Tree) Reads(name string) int { return t.count(t.reads, name) }

// count also finds what is no longer there, by the path it had.
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

// TotalReads returns how many read(2) all files have answered.
func (t *Tree) TotalReads() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := 0
	for _, m := range t.reads {
		n += m
	}
	return n
}

// Forget sets all counts to 0 and takes the violations off the list.
func (t *Tree) Forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.opens)
	clear(t.reads)
	t.violations = nil
}

// opened notes that an entry is being opened, for writing or for reading.
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

// Block lets every read of a file, or of all files below a directory, block
// until release is called; others go on. A read of a mounted tree then sits in
// the kernel, and signals save SIGKILL do not end it, as with a driver that
// holds its lock. Unmounting ends it with EIO. Opening is not blocked.
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

// block puts a gate before a path; several may stand there.
func (t *Tree) block(at string) chan struct{} {
	gate := make(chan struct{})
	t.blocks[at] = append(t.blocks[at], gate)
	return gate
}

// blocked returns a gate that reads of name wait at, nil where there is none.
func (t *Tree) blocked(name string) chan struct{} {
	for at, gates := range t.blocks {
		if len(gates) > 0 && (name == at || strings.HasPrefix(name, strings.TrimSuffix(at, "/")+"/")) {
			return gates[0]
		}
	}
	return nil
}
