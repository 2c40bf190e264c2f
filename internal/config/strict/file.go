package strict

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// File is a file that may change while the exporter runs. It starts no goroutine:
// its owner calls Changed every few seconds and then Read. It is not safe for
// concurrent use.
type File struct {
	path string
	// known is the last state of the file that was returned to the owner by
	// NewFile, Read or Changed; seen is the state at the last Changed. Both are
	// nil if there was nothing to read.
	known, seen fs.FileInfo
}

// NewFile returns the file at path in its current state, without reading it.
func NewFile(path string) *File {
	f := &File{path: path}
	f.known, _ = f.stat()
	return f
}

// Path returns the path given to NewFile.
func (f *File) Path() string { return f.path }

// Read returns the content of the file, which must be a regular one of at most
// MaxSize bytes; of a longer one a little more, which Decode refuses.
func (f *File) Read() ([]byte, error) {
	f.known, f.seen = nil, nil
	file, info, err := f.open()
	if err != nil {
		return nil, err
	}
	defer file.Close()
	// What is written after open differs from info, so Changed sees it.
	data, err := io.ReadAll(io.LimitReader(file, MaxSize+1))
	if err != nil {
		return nil, err
	}
	f.known, f.seen = info, info
	return data, nil
}

// Changed reports, once, that the file differs from the file that Read read, or
// can be read where it could not. It looks at what path resolves to, so it sees
// the swapped symbolic link by which Kubernetes updates a ConfigMap. A change
// is reported by the second call in a row that finds the file in the same
// state: a file that is just being written is left alone. The error says that
// there is no file to look at; it is no change.
func (f *File) Changed() (bool, error) {
	info, err := f.stat()
	if err != nil {
		f.seen = nil
		return false, err
	}
	changed := same(f.seen, info) && !same(f.known, info)
	f.seen = info
	if changed {
		f.known = info
	}
	return changed, nil
}

// stat opens the file rather than only looking at it: an unreadable file counts
// as absent.
func (f *File) stat() (fs.FileInfo, error) {
	file, info, err := f.open()
	if err == nil {
		file.Close()
	}
	return info, err
}

func (f *File) open() (*os.File, fs.FileInfo, error) {
	// O_NONBLOCK: opening a named pipe must not wait for its writer.
	file, err := os.OpenFile(f.path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("read %s: not a regular file", f.path)
	}
	if err != nil {
		file.Close()
		return nil, nil, err
	}
	return file, info, nil
}

func same(a, b fs.FileInfo) bool {
	return a != nil && b != nil && os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}
