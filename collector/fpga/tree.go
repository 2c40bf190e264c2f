package fpga

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/accel-exporter/accel-exporter/collector/sysfs"
)

// errForbidden: the file is not on the allow-list of its family.
var errForbidden = errors.New("not on the allow-list of its driver")

// tree opens only the files on an allow-list. It belongs to one goroutine.
type tree struct {
	sysfs.FS
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

func newTree(f sysfs.FS, allow []string) *tree {
	return &tree{FS: f, allow: allow, allowed: map[string]bool{}, slow: map[string]*slowText{}}
}

// Read is sysfs.FS.Read for an allowed file.
func (t *tree) Read(name string) (string, error) {
	if err := t.check(name); err != nil {
		return "", err
	}
	return t.FS.Read(name)
}

// ReadBytes is sysfs.FS.ReadBytes for an allowed file.
func (t *tree) ReadBytes(name string, limit int) ([]byte, error) {
	if err := t.check(name); err != nil {
		return nil, err
	}
	return t.FS.ReadBytes(name, limit)
}

// ReadLines is sysfs.FS.ReadLines for an allowed file.
func (t *tree) ReadLines(name string, longest, limit int) (string, error) {
	if err := t.check(name); err != nil {
		return "", err
	}
	return t.FS.ReadLines(name, longest, limit)
}

// ReadEvery is Read at most once in interval. An errno is cached like a text,
// except ENOENT: a missing file may appear.
func (t *tree) ReadEvery(now time.Time, interval time.Duration, name string) (string, error) {
	s := t.slow[name]
	if s != nil && (now.Sub(s.at) < interval || interval == never) {
		return s.text, s.err
	}
	text, err := t.Read(name)
	if err != nil && absent(err) {
		delete(t.slow, name)
		return text, err
	}
	t.slow[name] = &slowText{text: text, err: err, at: now}
	return text, err
}

// Target returns the path to which a link of a class or a bus leads, if it exists. Such
// a link leads to a device directly, so this is Resolve with two calls.
func (t *tree) Target(link string) (string, error) {
	to, err := os.Readlink(t.Path(link))
	if err != nil {
		return "", err
	}
	to = path.Join(path.Dir(link), to)
	if !t.Exists(to) {
		return "", &fs.PathError{Op: "resolve", Path: t.Path(link), Err: syscall.ENOENT}
	}
	return to, nil
}

// forget clears the cache of ReadEvery and of the allow-list.
func (t *tree) forget() {
	clear(t.slow)
	clear(t.allowed)
}

// maxPaths bounds the paths that a tree caches: their numbers change when
// drivers are bound again.
const maxPaths = 4096

func (t *tree) check(name string) error {
	ok, known := t.allowed[name]
	if !known {
		if len(t.allowed) >= maxPaths {
			t.forget()
		}
		ok = allows(t.allow, name)
		t.allowed[name] = ok
	}
	if !ok {
		return &fs.PathError{Op: "open", Path: name, Err: errForbidden}
	}
	return nil
}

// allows reports whether a pattern matches the end of name.
func allows(patterns []string, name string) bool {
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

// absent reports whether err means that the file or the device does not exist
// any more.
func absent(err error) bool {
	switch sysfs.Errno(err) {
	case syscall.ENOENT, syscall.ENODEV, syscall.ENXIO, syscall.ENOTDIR:
		return true
	}
	return false
}

// noValue reports whether err means that the driver has no value now: nothing
// to measure, busy, not supported.
func noValue(err error) bool {
	switch sysfs.Errno(err) {
	case syscall.ENODATA, syscall.EBUSY, syscall.EAGAIN, syscall.EOPNOTSUPP:
		return true
	}
	return absent(err)
}

// text reads an attribute. A missing file or a value that the driver does not
// have is absent; any other errno is an error.
func (r *reading) text(name string) (string, bool) {
	text, ok := r.got(r.fs.Read(name))
	r.answered = r.answered || ok
	return text, ok
}

// textEvery is text at most once in interval, where that is not 0.
func (r *reading) textEvery(interval time.Duration, name string) (string, bool) {
	if interval == 0 {
		return r.text(name)
	}
	return r.got(r.fs.ReadEvery(r.now, interval, name))
}

func (r *reading) got(text string, err error) (string, bool) {
	if err == nil {
		return text, true
	}
	if !noValue(err) {
		r.fail(fmt.Errorf("read %s: %w", r.ID, err))
	}
	return "", false
}

// natural compares names of the same form by their numbers: temp9 precedes temp10.
func natural(a, b string) int {
	return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
}
