package kernellog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"
)

const (
	// pollEvery is the time between two reads of a regular file, or of a device
	// that does not support polling.
	pollEvery = 200 * time.Millisecond
	// chunk is the size of a read, in bytes. The kernel returns one record of
	// at most 8 KiB, and fails where the buffer is smaller.
	chunk = 32 << 10
)

// stream is a log that returns each record once: /dev/kmsg, or a pipe.
type stream struct {
	source *Source
	path   string
	file   *os.File
	// tail is a second handle, at the end of the log when it was opened. Its
	// first record is the first one after the past.
	tail *os.File
	next uint64 // sequence number of that record
	seen bool   // next is valid
	past bool   // still within the past
}

func newStream(s *Source, path string, f *os.File) *stream {
	st := &stream{source: s, path: path, file: f, past: true}
	tail, err := s.openFile(path)
	if err != nil {
		return st // the past ends with the first pause
	}
	if _, err := tail.Seek(0, io.SeekEnd); err != nil {
		s.release(tail)
		return st
	}
	st.tail = tail
	return st
}

func (l *stream) files() []*os.File {
	if l.tail == nil {
		return []*os.File{l.file}
	}
	return []*os.File{l.file, l.tail}
}

func (l *stream) follow(stop <-chan struct{}, r *reader, ready func()) error {
	buf := make([]byte, chunk)
	for wait := false; ; {
		n, err := read(l.file, buf, wait)
		wait = false
		switch {
		case err == nil && n == 0:
			return io.ErrUnexpectedEOF
		case err == nil:
			r.feed(buf[:n])
		case errors.Is(err, syscall.EPIPE):
			// Overwritten before it was read; the gap in the numbers is
			// counted.
		case errors.Is(err, syscall.EAGAIN):
			l.past, wait = false, true
			ready()
		case errors.Is(err, os.ErrNoDeadline):
			select {
			case <-stop:
				return os.ErrClosed
			case <-time.After(pollEvery):
			}
		default:
			return err
		}
	}
}

// isPast compares sequence numbers; the past of a log without them ends with
// the first pause.
func (l *stream) isPast(at position) bool {
	if !l.past || !at.numbered {
		return l.past
	}
	if !l.seen && l.tail != nil {
		buf := make([]byte, chunk)
		if n, err := read(l.tail, buf, false); err == nil {
			line, _, _ := bytes.Cut(buf[:n], []byte{'\n'})
			if rec, ok := parseRecord(line); ok {
				l.next, l.seen = rec.seq, true
			}
		}
	}
	return !l.seen || at.seq < l.next
}

// read reads once, without waiting or until data arrives or f is closed. It
// returns os.ErrNoDeadline where f does not support waiting, and EAGAIN where
// there is no data.
func read(f *os.File, buf []byte, wait bool) (n int, err error) {
	conn, err := f.SyscallConn()
	if err != nil {
		return 0, err
	}
	tried := false
	waited := conn.Read(func(fd uintptr) bool {
		tried = true
		for {
			n, err = syscall.Read(int(fd), buf)
			if !errors.Is(err, syscall.EINTR) {
				break
			}
		}
		return !wait || !errors.Is(err, syscall.EAGAIN)
	})
	switch {
	case waited == nil:
	case errors.Is(waited, os.ErrClosed):
		return 0, waited
	case tried && errors.Is(err, syscall.EAGAIN):
		return 0, os.ErrNoDeadline
	default:
		return 0, waited
	}
	if err != nil {
		return 0, fmt.Errorf("read: %w", err)
	}
	return n, nil
}
