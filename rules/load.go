package rules

import (
	"embed"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"

	"github.com/accel-exporter/accel-exporter/internal/strict"
)

//go:embed *.yaml
var files embed.FS

var builtin = sync.OnceValue(func() *Set {
	l := newLoader()
	names, err := files.ReadDir(".")
	for _, f := range names {
		data, readErr := files.ReadFile(f.Name())
		err = errors.Join(err, readErr)
		l.read(f.Name(), data)
	}
	if err := errors.Join(err, l.err()); err != nil {
		panic(fmt.Sprintf("rules: a built-in file is broken: %v", err))
	}
	return &l.set
})

// Builtin returns the rules that are built in. The Set is shared.
func Builtin() *Set { return builtin() }

// Load reads rule files, given by path or pattern of path/filepath.Match. The
// error is of type strict.Mistakes where the files can be read but not taken;
// it has every mistake of all files.
func Load(patterns ...string) (*Set, error) {
	paths, err := expand(patterns)
	if err != nil {
		return nil, err
	}
	l := newLoader()
	var errs []error
	for _, path := range paths {
		data, err := strict.NewFile(path).Read()
		if err != nil {
			errs = append(errs, err)
			continue
		}
		l.read(path, data)
	}
	if err := errors.Join(append(errs, l.err())...); err != nil {
		if len(errs) == 0 {
			err = l.err()
		}
		return nil, err
	}
	return &l.set, nil
}

// Parse is Load for the content of one file, which name stands for.
func Parse(name string, data []byte) (*Set, error) {
	l := newLoader()
	l.read(name, data)
	if err := l.err(); err != nil {
		return nil, err
	}
	return &l.set, nil
}

// expand returns the paths that the patterns match, each once.
func expand(patterns []string) ([]string, error) {
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
