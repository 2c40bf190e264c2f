package fpga

import (
	"errors"
	"io/fs"
	"syscall"

	"github.com/accel-exporter/accel-exporter/collector/sysfs"
)

// readLines is Read for a list that the driver hands out in whole lines: what
// one read(2) returns then ends before the page does, and only a read that
// returns nothing is the end. longest is the longest line: where one would
// still have fitted there was none, and the driver is not asked again.
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
