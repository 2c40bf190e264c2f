package fpga

import (
	"errors"
	"io/fs"
	"syscall"

	"github.com/accel-exporter/accel-exporter/collector/sysfs"
)

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
