package fpga

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path"
	"syscall"
	"time"

	"github.com/accel-exporter/accel-exporter/collector/sysfs"
)

// tree opens only the files on the allow-list of a family. It belongs to one
// goroutine.
type tree struct{ *sysfs.Reader }

func newTree(f sysfs.FS, allow []string) *tree { return &tree{sysfs.NewReader(f, allow)} }

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
