package fpga

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
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

// natural compares names by their numbers: dfl_dev.9 precedes dfl_dev.10.
func natural(a, b string) int {
	for a != "" && b != "" {
		da, ra := digits(a)
		db, rb := digits(b)
		if da != "" && db != "" {
			x, y := strings.TrimLeft(da, "0"), strings.TrimLeft(db, "0")
			if c := cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(x, y)); c != 0 {
				return c
			}
			a, b = ra, rb
			continue
		}
		if c := cmp.Compare(a[0], b[0]); c != 0 {
			return c
		}
		a, b = a[1:], b[1:]
	}
	return cmp.Compare(len(a), len(b))
}

// digits splits the leading decimal digits from s.
func digits(s string) (number, rest string) {
	rest = strings.TrimLeft(s, "0123456789")
	return s[:len(s)-len(rest)], rest
}

// readLines is Read for a list that the driver returns in whole lines: a
// read(2) may end before the page does, and only an empty read is the end.
// longest is the longest line: where another one would have fitted, the list
// has ended and the driver is not called again.
func (t *tree) readLines(name string, longest, limit int) (string, error) {
	if err := t.check(name); err != nil {
		return "", err
	}
	path := t.Path(name)
	fd, err := retry(func() (int, error) {
		return syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC|syscall.O_NONBLOCK, 0)
	})
	if err != nil {
		return "", &fs.PathError{Op: "open", Path: path, Err: err}
	}
	defer syscall.Close(fd)
	var text []byte
	page := make([]byte, sysfs.Page)
	for len(text) < limit {
		n, err := retry(func() (int, error) { return syscall.Read(fd, page) })
		if err != nil {
			return "", &fs.PathError{Op: "read", Path: path, Err: err}
		}
		text = append(text, page[:max(n, 0)]...)
		if n <= len(page)-longest {
			break
		}
	}
	return string(text), nil
}

func retry(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if !errors.Is(err, syscall.EINTR) {
			return n, err
		}
	}
}
