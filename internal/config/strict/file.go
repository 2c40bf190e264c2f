package strict

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// File is a file, or the files of several patterns, that may change while the exporter
// runs. It starts no goroutine: its owner calls Changed every few seconds and then reads.
// It is not safe for concurrent use.
type File struct {
	patterns []string
	// known is the state that the owner knows; seen is the state at the last Changed.
	known, seen string
}

// NewFile returns the file at a path, or the files that patterns of path/filepath.Match
// stand for, in its current state.
func NewFile(patterns ...string) *File {
	f := &File{patterns: patterns}
	f.Know()
	return f
}

// Path returns the patterns given to NewFile.
func (f *File) Path() string { return strings.Join(f.patterns, ", ") }

// Know takes the current state as known: Changed reports later changes only. The owner
// calls it before it reads files of its own accord.
func (f *File) Know() {
	f.known, _ = f.state()
	f.seen = f.known
}

// Read returns the content of the file, which must be one regular file of at most
// MaxSize bytes; of a longer one a little more, which Decode refuses.
func (f *File) Read() ([]byte, error) {
	f.Know()
	// O_NONBLOCK: opening a named pipe must not wait for its writer.
	file, err := os.OpenFile(f.Path(), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("read %s: not a regular file", f.Path())
	}
	return io.ReadAll(io.LimitReader(file, MaxSize+1))
}

// Changed reports, once, that the files differ from the known state. It looks at what a
// path resolves to, so it sees the swapped symbolic link by which Kubernetes updates a
// ConfigMap. A change is reported by the second call in a row that finds the same state:
// a file that is just being written is left alone. The error says that there is no file to
// look at; it is no change.
func (f *File) Changed() (bool, error) {
	now, err := f.state()
	changed := err == nil && now == f.seen && now != f.known
	f.seen = now
	if changed {
		f.known = now
	}
	return changed, err
}

// state is a text that changes with the files.
func (f *File) state() (string, error) {
	var all []string
	for _, p := range f.patterns {
		paths := []string{p}
		if _, err := os.Stat(p); err != nil {
			if paths, _ = filepath.Glob(p); len(paths) == 0 { // Glob reports a bad pattern
				return "", err
			}
		}
		for _, path := range paths {
			info, err := os.Stat(path)
			if err != nil {
				return "", err
			}
			all = append(all, fmt.Sprint(path, info.Size(), info.ModTime().UnixNano(), info.Mode(), inode(info)))
		}
	}
	return strings.Join(all, "\n"), nil
}

func inode(info fs.FileInfo) uint64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return s.Ino
	}
	return 0
}
