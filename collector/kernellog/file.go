package kernellog

import (
	"errors"
	"io"
	"os"
	"time"
)

// maxPast bounds how many bytes of an existing file are read.
const maxPast = 16 << 20

// fileLog is a regular file that another process appends to. It may be
// truncated, or replaced by a new file of the same name.
type fileLog struct {
	source *Source
	path   string
	file   *os.File
	opened os.FileInfo // the file's info when it was opened
	offset int64
	// end is the size of the file when it was opened; 0 for a file that
	// replaced another.
	end  int64
	line int64 // offset of the current line
}

func (l *fileLog) handle() *os.File { return l.file }

func (l *fileLog) follow(stop <-chan struct{}, r *reader, ready func()) error {
	l.end = l.opened.Size()
	if l.end > maxPast {
		l.offset = l.end - maxPast
		r.skipping = true
	}
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	buf := make([]byte, chunk)
	for {
		if err := l.drain(r, buf, stop); err != nil {
			return err
		}
		ready()
		select {
		case <-stop:
			return os.ErrClosed
		case <-tick.C:
		}
		if err := l.renew(r, buf, stop); err != nil {
			return err
		}
	}
}

// drain reads to the end of the file.
func (l *fileLog) drain(r *reader, buf []byte, stop <-chan struct{}) error {
	for {
		select {
		case <-stop:
			return os.ErrClosed
		default:
		}
		n, err := l.file.ReadAt(buf, l.offset)
		if n > 0 {
			l.line = l.offset - int64(len(r.carry))
			l.offset += int64(n)
			r.feed(buf[:n])
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// renew starts again where the file has been truncated, and continues with the
// file that has replaced it.
func (l *fileLog) renew(r *reader, buf []byte, stop <-chan struct{}) error {
	if now, err := l.file.Stat(); err != nil {
		return err
	} else if now.Size() < l.offset {
		l.offset, l.end = 0, 0
		r.drop()
	}
	// During a rotation no file of that name exists.
	there, err := os.Stat(l.path)
	if err != nil || os.SameFile(l.opened, there) {
		return nil
	}
	f, err := l.source.openFile(l.path)
	if err != nil {
		return nil
	}
	opened, err := f.Stat()
	if err == nil && !opened.Mode().IsRegular() {
		err = errors.New("is no longer a regular file")
	}
	if err == nil {
		err = l.drain(r, buf, stop) // what was written between the last read and the rotation
	}
	if err != nil {
		l.source.release(f)
		return err
	}
	l.source.release(l.file)
	l.file, l.opened, l.offset, l.end = f, opened, 0, 0
	r.drop()
	return nil
}

// isPast compares the beginning of the line with the end of the past.
func (l *fileLog) isPast(offset int) bool { return l.line+int64(offset) < l.end }
