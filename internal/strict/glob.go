package strict

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
)

// Glob returns the paths that patterns of path/filepath.Match, or plain paths,
// stand for, each once. A pattern that matches nothing is an error.
func Glob(patterns []string) ([]string, error) {
	var paths []string
	var errs []error
	for _, p := range patterns {
		found, err := filepath.Glob(p)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("%s: %w; accepted is a path or a pattern such as rules/*.yaml", p, err))
		case len(found) == 0:
			errs = append(errs, fmt.Errorf("%s: no such file", p))
		}
		for _, path := range found {
			if !slices.Contains(paths, path) {
				paths = append(paths, path)
			}
		}
	}
	return paths, errors.Join(errs...)
}

// Content is what a file held when it was read.
type Content struct {
	// Name stands for the file in errors: its path.
	Name string `json:"name"`
	Data []byte `json:"data"`
}

// ReadFiles reads files, each of at most MaxSize. The error is of all that
// cannot be read, and the others come with it.
func ReadFiles(paths []string) ([]Content, error) {
	var read []Content
	var errs []error
	for _, path := range paths {
		data, err := NewFile(path).Read()
		if err != nil {
			errs = append(errs, err)
			continue
		}
		read = append(read, Content{path, data})
	}
	return read, errors.Join(errs...)
}
