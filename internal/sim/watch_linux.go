package sim

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// watchFile sends after each replacement of a file by a rename, once for
// several in a row, until ctx ends; then the channel is closed.
func watchFile(ctx context.Context, path string) (<-chan struct{}, error) {
	dir, name := filepath.Split(path)
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("inotify: %w", err)
	}
	f := os.NewFile(uintptr(fd), "inotify")
	if _, err := unix.InotifyAddWatch(fd, filepath.Clean(dir), unix.IN_MOVED_TO); err != nil {
		f.Close()
		return nil, fmt.Errorf("watch %s: %w", filepath.Clean(dir), err)
	}
	changed := make(chan struct{}, 1)
	stop := context.AfterFunc(ctx, func() { f.Close() })
	go func() {
		defer close(changed)
		defer f.Close()
		defer stop()
		buf := make([]byte, 64*(unix.SizeofInotifyEvent+unix.NAME_MAX+1))
		for {
			n, err := f.Read(buf)
			if err != nil {
				if !errors.Is(err, os.ErrClosed) {
					fmt.Fprintln(os.Stderr, "accel-sim: edits are not seen any more:", err)
				}
				return
			}
			if concerns(buf[:n], name) {
				select {
				case changed <- struct{}{}:
				default: // the reader will see the newest
				}
			}
		}
	}()
	return changed, nil
}

// concerns reports whether one of the events is for a file of this name, or
// means that events were lost (inotify(7)).
func concerns(events []byte, name string) bool {
	for len(events) >= unix.SizeofInotifyEvent {
		mask := binary.NativeEndian.Uint32(events[4:])
		size := unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(events[12:]))
		if size > len(events) {
			return true
		}
		of, _, _ := bytes.Cut(events[unix.SizeofInotifyEvent:size], []byte{0})
		if mask&unix.IN_Q_OVERFLOW != 0 || string(of) == name {
			return true
		}
		events = events[size:]
	}
	return false
}
