package kernellog

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// maxPast bounds how many bytes of an existing file are read.
const maxPast = 16 << 20

// lookEvery is how often a file is read without an event: not every file system sends
// them.
var lookEvery = 10 * time.Second

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
	// watch receives the kernel's events of the file and its folder, by inotify on the
	// descriptor notify. It is nil where the kernel permits no more watches: the file is
	// then read every pollEvery.
	watch  *os.File
	notify int
	looked time.Time
}

func (l *fileLog) handle() *os.File { return l.file }

func (l *fileLog) follow(stop <-chan struct{}, r *reader, ready func()) error {
	l.end = l.opened.Size()
	if l.end > maxPast {
		l.offset = l.end - maxPast
		r.skipping = true
	}
	l.openWatch()
	defer l.closeWatch()
	buf := make([]byte, chunk)
	for {
		if err := l.drain(r, buf, stop); err != nil {
			return err
		}
		ready()
		if err := l.wait(stop, buf); err != nil {
			return err
		}
		if err := l.renew(r, buf, stop); err != nil {
			return err
		}
	}
}

func (l *fileLog) openWatch() {
	fd, err := syscall.InotifyInit1(syscall.IN_CLOEXEC | syscall.IN_NONBLOCK)
	if err != nil {
		return
	}
	f := os.NewFile(uintptr(fd), "inotify")
	if l.source.own(f) != nil {
		return
	}
	l.watch, l.notify = f, fd
	_, err = syscall.InotifyAddWatch(fd, filepath.Dir(l.path), syscall.IN_CREATE|syscall.IN_MOVED_TO)
	if err != nil || l.watchFile() != nil {
		l.closeWatch()
	}
}

func (l *fileLog) closeWatch() {
	if l.watch != nil {
		l.source.release(l.watch)
		l.watch = nil
	}
}

func (l *fileLog) watchFile() error {
	if l.watch == nil {
		return nil
	}
	_, err := syscall.InotifyAddWatch(l.notify, l.path, syscall.IN_MODIFY)
	return err
}

// wait waits until the file or its folder may have changed, at least pollEvery after the
// last time.
func (l *fileLog) wait(stop <-chan struct{}, buf []byte) error {
	if l.watch != nil {
		_ = l.watch.SetReadDeadline(time.Now().Add(lookEvery))
		if _, err := l.watch.Read(buf); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			return err
		}
	}
	select {
	case <-stop:
		return os.ErrClosed
	case <-time.After(pollEvery - time.Since(l.looked)):
	}
	l.looked = time.Now()
	return nil
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
	if l.watchFile() != nil {
		l.closeWatch()
	}
	r.drop()
	return nil
}

// isPast compares the beginning of the line with the end of the past.
func (l *fileLog) isPast(offset int) bool { return l.line+int64(offset) < l.end }
