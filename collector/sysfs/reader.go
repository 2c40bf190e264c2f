package sysfs

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"
)

// ErrForbidden means that the file is not on the allow-list of the Reader.
var ErrForbidden = errors.New("not on the allow-list of its driver")

// Never is the interval for what does not change while a driver is bound.
const Never = 1 << 62

// Reader opens only the files on an allow-list, and reads what seldom changes only
// once in an interval. It belongs to one goroutine.
type Reader struct {
	FS
	allow   []string
	allowed map[string]bool
	slow    map[string]*slowText
}

// slowText is an attribute as last read.
type slowText struct {
	text string
	err  error
	at   time.Time
}

// NewReader returns a Reader of a tree. The allow-list has patterns of path.Match, which
// are matched against the last elements of a file's path. Directories and links are not
// opened and need no entry.
func NewReader(f FS, allow []string) *Reader {
	return &Reader{FS: f, allow: allow, allowed: map[string]bool{}, slow: map[string]*slowText{}}
}

// Read is FS.Read for an allowed file.
func (t *Reader) Read(name string) (string, error) {
	if err := t.check(name); err != nil {
		return "", err
	}
	return t.FS.Read(name)
}

// ReadBytes is FS.ReadBytes for an allowed file.
func (t *Reader) ReadBytes(name string, limit int) ([]byte, error) {
	if err := t.check(name); err != nil {
		return nil, err
	}
	return t.FS.ReadBytes(name, limit)
}

// ReadLines is FS.ReadLines for an allowed file.
func (t *Reader) ReadLines(name string, longest, limit int) (string, error) {
	if err := t.check(name); err != nil {
		return "", err
	}
	return t.FS.ReadLines(name, longest, limit)
}

// ReadEvery is Read at most once in interval. An errno is cached like a text,
// except ENOENT: a missing file may appear.
func (t *Reader) ReadEvery(now time.Time, interval time.Duration, name string) (string, error) {
	return t.every(now, interval, name, func() (string, error) { return t.Read(name) })
}

// ReadLinesEvery is ReadEvery by ReadLines.
func (t *Reader) ReadLinesEvery(now time.Time, interval time.Duration, name string, longest, limit int) (string, error) {
	return t.every(now, interval, name, func() (string, error) { return t.ReadLines(name, longest, limit) })
}

func (t *Reader) every(now time.Time, interval time.Duration, name string, read func() (string, error)) (string, error) {
	s := t.slow[name]
	if s != nil && (now.Sub(s.at) < interval || interval == Never) {
		return s.text, s.err
	}
	text, err := read()
	if Errno(err) == syscall.ENOENT {
		delete(t.slow, name)
		return text, err
	}
	t.slow[name] = &slowText{text: text, err: err, at: now}
	return text, err
}

// Forget clears the cache of ReadEvery and of the allow-list.
func (t *Reader) Forget() {
	clear(t.slow)
	clear(t.allowed)
}

// Cached is the number of files that ReadEvery remembers.
func (t *Reader) Cached() int { return len(t.slow) }

// maxPaths bounds the paths that a Reader caches: their numbers change when
// drivers are bound again.
const maxPaths = 4096

func (t *Reader) check(name string) error {
	ok, known := t.allowed[name]
	if !known {
		if len(t.allowed) >= maxPaths {
			t.Forget()
		}
		ok = Allows(t.allow, name)
		t.allowed[name] = ok
	}
	if !ok {
		return &fs.PathError{Op: "open", Path: name, Err: ErrForbidden}
	}
	return nil
}

// Allows reports whether a pattern matches the end of name.
func Allows(patterns []string, name string) bool {
	elements := strings.Split(name, "/")
	return slices.ContainsFunc(patterns, func(p string) bool {
		want := strings.Split(p, "/")
		if len(want) > len(elements) || slices.Contains(elements, "..") {
			return false
		}
		ok, err := path.Match(p, strings.Join(elements[len(elements)-len(want):], "/"))
		return ok && err == nil
	})
}
