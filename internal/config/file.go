package config

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/accel-exporter/accel-exporter/internal/strict"
)

// File is a configuration file that may change while the exporter runs. It
// starts no goroutine: its owner asks Changed every few seconds and then
// calls Load. It must not be used by two goroutines at once.
type File struct {
	file *strict.File
	sum  string
}

// NewFile returns the file at path as it is now, unread.
func NewFile(path string) *File { return &File{file: strict.NewFile(path)} }

// Path returns the path given to NewFile.
func (f *File) Path() string { return f.file.Path() }

// Sum returns the SHA-256, in hex, of the content that Load last accepted, or
// "".
func (f *File) Sum() string { return f.sum }

// Load reads the file, once, and parses what it read. On error the caller
// keeps the configuration it has; the error is of type strict.Mistakes where
// the file could be read and its content is at fault.
func (f *File) Load() (*Config, error) {
	data, err := f.file.Read()
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	c, err := Parse(f.Path(), data)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(data)
	f.sum = hex.EncodeToString(sum[:])
	return c, nil
}

// Changed reports, once, that the file is another than the one that Load read;
// see strict.File.
func (f *File) Changed() (bool, error) {
	changed, err := f.file.Changed()
	if err != nil {
		return false, fmt.Errorf("configuration: %w", err)
	}
	return changed, nil
}
