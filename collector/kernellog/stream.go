package kernellog

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"
)

const (
	// pollEvery is the least time between two reads of a regular file, and the time
	// between two reads of a device that does not support polling.
	pollEvery = 200 * time.Millisecond
	// chunk is the size of a read, in bytes. The kernel returns one record of
	// at most 8 KiB, and fails where the buffer is smaller.
	chunk = 32 << 10
)

// stream is a log that returns each record once: /dev/kmsg, or a pipe.
type stream struct {
	file *os.File
	past bool // still within the past, which ends with the first pause
}

func (l *stream) handle() *os.File { return l.file }

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

func (l *stream) isPast(int) bool { return l.past }

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
