package faketree

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// errnos are the errors of attributes by name.
var errnos = func() map[string]syscall.Errno {
	all := map[string]syscall.Errno{"EOPNOTSUPP": syscall.EOPNOTSUPP} // which has two names
	for errno := syscall.Errno(1); errno < 200; errno++ {
		if name := unix.ErrnoName(errno); name != "" {
			all[name] = errno
		}
	}
	return all
}()
