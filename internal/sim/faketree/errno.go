package faketree

import "syscall"

// errnos are the known errors of sysfs attributes.
var errnos = map[string]syscall.Errno{
	"EACCES":     syscall.EACCES,
	"EAGAIN":     syscall.EAGAIN,
	"EBUSY":      syscall.EBUSY,
	"ECOMM":      syscall.ECOMM,
	"EFAULT":     syscall.EFAULT,
	"EHOSTDOWN":  syscall.EHOSTDOWN,
	"EINTR":      syscall.EINTR,
	"EINVAL":     syscall.EINVAL,
	"EIO":        syscall.EIO,
	"ENODATA":    syscall.ENODATA,
	"ENODEV":     syscall.ENODEV,
	"ENOENT":     syscall.ENOENT,
	"ENOMEM":     syscall.ENOMEM,
	"ENOSYS":     syscall.ENOSYS,
	"ENOTTY":     syscall.ENOTTY,
	"ENXIO":      syscall.ENXIO,
	"EOPNOTSUPP": syscall.EOPNOTSUPP,
	"EOVERFLOW":  syscall.EOVERFLOW,
	"EPERM":      syscall.EPERM,
	"EPROTO":     syscall.EPROTO,
	"ERANGE":     syscall.ERANGE,
	"EREMOTEIO":  syscall.EREMOTEIO,
	"ESHUTDOWN":  syscall.ESHUTDOWN,
	"ESTALE":     syscall.ESTALE,
	"ETIMEDOUT":  syscall.ETIMEDOUT,
}

// errnoName returns the name of an errno in a tree file, "EIO" for one without
// a name.
func errnoName(errno syscall.Errno) string {
	for name, e := range errnos {
		if e == errno {
			return name
		}
	}
	return "EIO"
}
