package engine

import (
	"errors"
	"fmt"
	"sync"

	"github.com/accel-exporter/accel-exporter/internal/strict"
	"github.com/accel-exporter/accel-exporter/rules"
)

var builtin = sync.OnceValue(func() *Set {
	l := newLoader()
	names, err := rules.Files.ReadDir(".")
	for _, f := range names {
		data, readErr := rules.Files.ReadFile(f.Name())
		err = errors.Join(err, readErr)
		l.read(f.Name(), data)
	}
	if err := errors.Join(err, l.err()); err != nil {
		panic(fmt.Sprintf("rules: a built-in file is broken: %v", err))
	}
	return &l.set
})

// Builtin returns the built-in rules. The Set is shared.
func Builtin() *Set { return builtin() }

// Load reads rule files, given by path or by pattern of path/filepath.Match.
// The error is of type strict.Mistakes when the files can be read and their
// content is invalid; it names every mistake of all files.
func Load(patterns ...string) (*Set, error) {
	paths, err := strict.Glob(patterns)
	if err != nil {
		return nil, err
	}
	l := newLoader()
	var unread []error
	for _, path := range paths {
		data, err := strict.NewFile(path).Read()
		if err != nil {
			unread = append(unread, err)
			continue
		}
		l.read(path, data)
	}
	if len(unread) > 0 {
		return nil, errors.Join(append(unread, l.err())...)
	}
	return l.result()
}

// Parse is Load for the content of one file; name is its name in errors.
func Parse(name string, data []byte) (*Set, error) {
	l := newLoader()
	l.read(name, data)
	return l.result()
}

// result returns the rules, or the mistakes in the files.
func (l *loader) result() (*Set, error) {
	if err := l.err(); err != nil {
		return nil, err
	}
	return &l.set, nil
}
