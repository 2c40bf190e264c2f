package faketree

import (
	"fmt"
	"io/fs"
	"path"
	"strings"
	"syscall"
)

// Set gives a file its content, exactly as a read shall return it: the newline
// at the end is the caller's. The file and the directories above it are made
// where they are missing; an errno set before is gone.
func (t *Tree) Set(name, content string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.file(name)
	e.content, e.errno = content, 0
}

// SetErr lets every read of a file fail with errno; opening it still works, as
// in sysfs. The file is made where it is missing. 0 lets reads succeed again.
func (t *Tree) SetErr(name string, errno syscall.Errno) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.file(name).errno = errno
}

// SetMode gives a file its permission bits, 0444 until then. A file without a
// read bit cannot be opened for reading by anyone, as in sysfs.
func (t *Tree) SetMode(name string, mode fs.FileMode) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.file(name).mode = mode.Perm()
}

// Link makes a symbolic link, in place of what stands there. The target is
// kept as it is.
func (t *Tree) Link(name, target string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	up, base := t.place(name)
	e := t.make(base, up)
	e.target, e.mode = target, 0o777
	up.children[base] = e
}

// Mkdir makes a directory and those above it.
func (t *Tree) Mkdir(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.place(path.Join(clean(name), "x"))
}

// Remove takes a file, a link or a directory with all that is in it away, and
// reports whether there was one. Links to it stay and lead nowhere.
func (t *Tree) Remove(name string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.find(name, false)
	if e == nil || e.up == nil {
		return false
	}
	delete(e.up.children, e.name)
	return true
}

// Rename moves a file, a link or a directory with all that is in it, in place
// of what stands there. Targets of links stay as they are.
func (t *Tree) Rename(from, to string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.find(from, false)
	if e == nil || e.up == nil {
		return fmt.Errorf("rename %s: %w", clean(from), fs.ErrNotExist)
	}
	if strings.HasPrefix(clean(to)+"/", clean(from)+"/") {
		return fmt.Errorf("rename %s: %s lies in it", clean(from), clean(to))
	}
	delete(e.up.children, e.name)
	e.up, e.name = t.place(to)
	e.up.children[e.name] = e
	return nil
}
