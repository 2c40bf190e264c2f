package kernellog

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/accel-exporter/accel-exporter/collector"
)

// why returns the value of the label for an error of opening the log.
func why(err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "absent"
	case errors.Is(err, fs.ErrPermission):
		return "denied"
	default:
		return "error"
	}
}

// unreadable are the errors of opening several logs.
type unreadable []error

func (u unreadable) Unwrap() []error { return u }

func (u unreadable) Error() string {
	texts := make([]string, len(u))
	for i, err := range u {
		texts[i] = err.Error()
	}
	return strings.Join(texts, "; ")
}

// refusal returns why none of the logs could be opened. A missing permission
// takes precedence over a missing file.
func refusal(failed unreadable) error {
	there := func(err error) bool { return !errors.Is(err, fs.ErrNotExist) }
	denied := func(err error) bool { return errors.Is(err, fs.ErrPermission) }
	switch {
	case !slices.ContainsFunc(failed, there):
		return fmt.Errorf("%w: %w", collector.ErrAbsent, failed)
	case slices.ContainsFunc(failed, denied):
		return fmt.Errorf("%w (the kernel log takes CAP_SYSLOG where the sysctl kernel.dmesg_restrict is 1, and in a container the device itself)", failed)
	default:
		return failed
	}
}

// openLog opens path and keeps the file for Close.
func (s *Source) openLog(path string) (follower, error) {
	f, err := s.openFile(path)
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err == nil && st.IsDir() {
		err = &fs.PathError{Op: "read", Path: path, Err: syscall.EISDIR}
	}
	if err != nil {
		s.release(f)
		return nil, err
	}
	if st.Mode().IsRegular() {
		return &fileLog{source: s, path: path, file: f, opened: st}, nil
	}
	return newStream(s, path, f), nil
}

func (s *Source) openFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		f.Close()
		return nil, os.ErrClosed
	}
	s.open = append(s.open, f)
	return f, nil
}

// release closes files and forgets them.
func (s *Source) release(files ...*os.File) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open = slices.DeleteFunc(s.open, func(f *os.File) bool { return slices.Contains(files, f) })
	for _, f := range files {
		f.Close()
	}
}

// follower is an opened log.
type follower interface {
	// follow feeds r until the log ends, with the reason as error, or stop is
	// closed. It calls ready once the past of the log has been fed.
	follow(stop <-chan struct{}, r *reader, ready func()) error
	// isPast reports whether a line was in the log when it was opened.
	isPast(line position) bool
	files() []*os.File
}
