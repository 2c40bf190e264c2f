package bundle

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/accel-exporter/accel-exporter/internal/status"
)

const (
	suffix     = ".tar.gz"
	sentSuffix = ".sent" // of an empty file beside a bundle that was sent
	tempPrefix = ".accel-bundle-"
)

// File is a bundle in the directory.
type File = status.Bundle

// store has the bundles of a node in a directory.
type store struct {
	directory string
	node      string
	keep      int

	// mu is not held during a call of the file system, which may block: a scrape and the
	// status page read files.
	mu    sync.Mutex
	files []File // the oldest first
}

func (s *store) path(name string) string { return filepath.Join(s.directory, name) }

func (s *store) list() []File {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.files)
}

// load finds the bundles of earlier runs and removes the files of an interrupted run. It
// reports a directory in which no file can be made.
func (s *store) load() error {
	_ = os.Mkdir(s.directory, 0o700) // ReadDir reports that it is absent
	entries, err := os.ReadDir(s.directory)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), s.temporary()) {
			_ = os.Remove(s.path(e.Name())) // a directory that is read-only is reported below
		}
		name := e.Name()
		mine := strings.HasPrefix(name, "accel-"+fileName(s.node)+"-") && strings.HasSuffix(name, suffix) && len(name) == len(FileName(s.node, time.Time{}))
		if !mine || !e.Type().IsRegular() {
			continue // of another node: they may share a directory
		}
		data, err := ReadFile(s.path(e.Name()))
		if err != nil {
			continue // it was not written by this program
		}
		b, err := Parse(data)
		if err != nil {
			continue
		}
		f := File{Name: e.Name(), Fault: b.Incident.Fault, Size: len(data), SHA256: b.SHA256}
		for i := range b.Incident.Devices {
			f.Devices = append(f.Devices, b.Incident.Devices[i].ID)
		}
		_, err = os.Stat(s.path(e.Name() + sentSuffix))
		f.Sent = err == nil
		s.files = append(s.files, f)
	}
	slices.SortStableFunc(s.files, func(a, b File) int { return a.Fault.Compare(b.Fault) })
	return s.probe()
}

// probe reports a directory in which no file can be made.
func (s *store) probe() error {
	f, err := os.CreateTemp(s.directory, s.temporary())
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// save writes a bundle under its name once it is complete on the disk, and removes the
// oldest ones beyond the limit.
func (s *store) save(p *pending, data []byte) (File, error) {
	sum := sha256.Sum256(data)
	f := File{Name: p.name, Fault: p.fault, Devices: p.devices, Size: len(data), SHA256: hex.EncodeToString(sum[:])}
	if err := s.replace(p.name, data); err != nil {
		return f, err
	}
	s.mu.Lock()
	s.files = append(slices.DeleteFunc(s.files, func(o File) bool { return o.Name == f.Name }), f)
	excess := max(len(s.files)-s.keep, 0)
	old := slices.Clone(s.files[:excess])
	s.files = s.files[excess:]
	s.mu.Unlock()
	for _, o := range old { // a file that stays is removed after the next start
		_ = os.Remove(s.path(o.Name + sentSuffix))
		_ = os.Remove(s.path(o.Name))
	}
	return f, nil
}

// temporary is the beginning of the names of files that are not complete.
func (s *store) temporary() string { return tempPrefix + fileName(s.node) + "~" }

func (s *store) replace(name string, data []byte) (err error) {
	f, err := os.CreateTemp(s.directory, s.temporary())
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	_, err = f.Write(data)
	err = errors.Join(err, f.Sync(), f.Close())
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), s.path(name))
}

// drop forgets a file that is not there any more.
func (s *store) drop(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files = slices.DeleteFunc(s.files, func(f File) bool { return f.Name == name })
}

// ReadFile reads a bundle, and no more of a file than a bundle can have.
func ReadFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, MaxSize+1))
	if err == nil && len(data) > MaxSize {
		err = fmt.Errorf("%s has more than %d bytes; a bundle has at most so many", path, MaxSize)
	}
	return data, err
}

// sent marks a bundle as sent, also for the next run.
func (s *store) sent(name string) (File, error) {
	s.mu.Lock()
	i := slices.IndexFunc(s.files, func(f File) bool { return f.Name == name })
	if i < 0 { // removed meanwhile
		s.mu.Unlock()
		return File{Name: name, Sent: true}, nil
	}
	s.files[i].Sent = true
	f := s.files[i]
	s.mu.Unlock()
	return f, os.WriteFile(s.path(name+sentSuffix), nil, 0o600)
}
