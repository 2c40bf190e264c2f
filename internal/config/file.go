package config

import (
	"fmt"

	"github.com/accel-exporter/accel-exporter/internal/strict"
)

// File is a configuration file that may change while the exporter runs: a
// strict.File that is loaded rather than read.
type File struct{ *strict.File }

// NewFile returns the file at path as it is now, not loaded.
func NewFile(path string) *File { return &File{strict.NewFile(path)} }

// Load reads the file, once, and parses what it read. On error the caller
// keeps the configuration it has; the error is of type strict.Mistakes where
// the file could be read and its content is at fault.
func (f *File) Load() (*Config, error) {
	data, err := f.Read()
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	return Parse(f.Path(), data)
}
