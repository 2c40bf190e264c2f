package fpga

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// uevent is the kernel's broadcast when a device or driver comes or goes:
// lib/kobject_uevent.c.
type uevent struct {
	action    string // add, remove, bind, unbind, change, move, online, offline
	path      string // of the device, below /sys
	subsystem string
}

// parseUevent parses a message: action@path, then KEY=value, each
// NUL-terminated. Messages forwarded by udev begin differently.
func parseUevent(msg []byte) (uevent, bool) {
	head, rest, ok := bytes.Cut(msg, []byte{0})
	action, path, at := strings.Cut(string(head), "@")
	if !ok || !at || action == "" || !strings.HasPrefix(path, "/") {
		return uevent{}, false
	}
	e := uevent{action: action, path: path}
	for pair := range bytes.SplitSeq(rest, []byte{0}) {
		if v, found := strings.CutPrefix(string(pair), "SUBSYSTEM="); found {
			e.subsystem = v
		}
	}
	return e, true
}

// matters reports whether the event may mean that a card has come, gone or been
// loaded.
func (e uevent) matters() bool {
	switch e.subsystem {
	case "pci", "platform", "dfl", "fpga_manager", "fpga_region":
		return e.action != "change"
	}
	return false
}

const (
	// maxUevent is the largest message: the kernel's UEVENT_BUFFER_SIZE and the
	// header.
	maxUevent = 8192
	// calm is the time within which the events of one card's devices follow
	// each other.
	calm = 250 * time.Millisecond
)

// listener receives events of devices that come and go. It only triggers a
// round.
type listener struct {
	from io.ReadCloser
	done chan struct{}
}

// listen calls wake after events that matter, once for events within calm.
func listen(from io.ReadCloser, wake func()) *listener {
	l := &listener{from: from, done: make(chan struct{})}
	heard := make(chan struct{}, 1)
	go func() {
		defer close(heard)
		buf := make([]byte, maxUevent)
		for {
			n, err := from.Read(buf)
			if errors.Is(err, os.ErrClosed) || err == io.EOF {
				return
			}
			// Any other error means that messages were lost for lack of space.
			if e, ok := parseUevent(buf[:n]); err != nil || ok && e.matters() {
				select {
				case heard <- struct{}{}:
				default:
				}
			}
			if err != nil {
				time.Sleep(calm) // in case it lasts
			}
		}
	}()
	go func() {
		defer close(l.done)
		for range heard {
			time.Sleep(calm)
			wake()
		}
	}()
	return l
}

func (l *listener) close() {
	l.from.Close()
	<-l.done
}

// openUevents joins the kernel's broadcasts. It requires no privilege; a user
// namespace has none.
func openUevents() (io.ReadCloser, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_KOBJECT_UEVENT)
	if err != nil {
		return nil, fmt.Errorf("uevents: %w", err)
	}
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: 1}); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("uevents: %w", err)
	}
	return os.NewFile(uintptr(fd), "uevents"), nil
}
