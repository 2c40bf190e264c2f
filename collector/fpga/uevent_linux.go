package fpga

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

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
