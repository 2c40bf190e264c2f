package faketree

import (
	"fmt"
	"io/fs"
	"path"
	"strings"
	"syscall"
)

// Set sets the content of a file, exactly as a read returns it, including the
// final newline. The file and the directories above it are created where
// missing; an errno is cleared.
func (t *Tree) Set(name, content string) {
	t.mu.Lock()
	defer t.changed()
	e := t.file(name)
	e.content, e.errno = content, 0
}

// SetErr makes every read of a file fail with errno; opening it still works, as
// in sysfs. The file is created where missing. 0 makes reads succeed again.
func (t *Tree) SetErr(name string, errno syscall.Errno) {
	t.mu.Lock()
	defer t.changed()
	t.file(name).errno = errno
}

// SetMode sets the permission bits of a file, 0444 by default. As in sysfs, no
// user can open a file without a read bit for reading.
func (t *Tree) SetMode(name string, mode fs.FileMode) {
	t.mu.Lock()
	defer t.changed()
	t.file(name).mode = mode.Perm()
}

// Link creates a symbolic link and replaces what exists. The target is not
// changed.
func (t *Tree) Link(name, target string) {
	t.mu.Lock()
	defer t.changed()
	up, base := t.place(name)
	e := t.make(base, up)
	e.target, e.mode = target, 0o777
	up.children[base] = e
}

// Mkdir creates a directory and its parents.
func (t *Tree) Mkdir(name string) {
	t.mu.Lock()
	defer t.changed()
	t.place(path.Join(clean(name), "x"))
}

// Remove removes a file, a link or a directory with its content, and reports
// whether there was one. Links to it become dangling.
func (t *Tree) Remove(name string) bool {
	t.mu.Lock()
	defer t.changed()
	e := t.find(name, false)
	if e == nil || e.up == nil {
		return false
	}
	delete(e.up.children, e.name)
	return true
}

// Rename moves a file, a link or a directory with its content, and replaces
// what exists. Targets of links are not changed.
func (t *Tree) Rename(from, to string) error {
	t.mu.Lock()
	defer t.changed()
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
