package kernellog

import (
	"io/fs"
	"os"
	"slices"
	"syscall"
)

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
	return &stream{file: f, past: true}, nil
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

// release closes a file and forgets it.
func (s *Source) release(f *os.File) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open = slices.DeleteFunc(s.open, func(o *os.File) bool { return o == f })
	f.Close()
}

// follower is an opened log.
type follower interface {
	// follow feeds r until the log ends, with the reason as error, or stop is
	// closed. It calls ready once the past of the log has been fed.
	follow(stop <-chan struct{}, r *reader, ready func()) error
	// isPast reports whether a line was in the log when it was opened; offset is its
	// place in the bytes that the log has fed last.
	isPast(offset int) bool
	handle() *os.File
}
