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

// Builtin returns the rules that are built in. The Set is shared.
func Builtin() *Set { return builtin() }

// Load reads rule files, given by path or pattern of path/filepath.Match. The
// error is of type strict.Mistakes where the files can be read but not taken;
// it has every mistake of all files.
func Load(patterns ...string) (*Set, error) {
	paths, err := strict.Glob(patterns)
	if err != nil {
		return nil, err
	}
	files, unread := strict.ReadFiles(paths)
	set, err := ParseFiles(files)
	if unread != nil {
		return nil, errors.Join(unread, err)
	}
	return set, err
}

// ParseFiles is Load for files that are read already.
func ParseFiles(files []strict.Content) (*Set, error) {
	l := newLoader()
	for _, f := range files {
		l.read(f.Name, f.Data)
	}
	if err := l.err(); err != nil {
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
