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

// Content reads the file, once. Parse takes what it returns.
func (f *File) Content() (strict.Content, error) {
	data, err := f.Read()
	if err != nil {
		return strict.Content{}, fmt.Errorf("configuration: %w", err)
	}
	return strict.Content{Name: f.Path(), Data: data}, nil
}

// Load reads the file, once, and parses what it read. On error the caller
// keeps the configuration it has; the error is of type strict.Mistakes where
// the file could be read and its content is at fault.
func (f *File) Load() (*Config, error) {
	content, err := f.Content()
	if err != nil {
		return nil, err
	}
	return Parse(content.Name, content.Data)
}
