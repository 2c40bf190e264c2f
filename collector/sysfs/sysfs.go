// Package sysfs reads attributes of sysfs and procfs: one bounded read each,
// with the kernel's error preserved. It never writes, follows only the links
// that it is given, and never waits: EAGAIN from a driver is returned, where
// package os would poll forever.
//
// A read can still block in the kernel. Callers give each device its own
// goroutine and deadline.
package sysfs

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
)

// Page is the size in bytes of the largest ordinary attribute: the kernel gives
// each one page.
const Page = 4096

// FS is a tree. Paths given to its methods are relative to its root and use
// slashes.
type FS struct{ root string }

// New returns the tree at root: /sys, or a copy of one.
func New(root string) FS { return FS{root: filepath.Clean(root)} }

// Root returns the path of the tree.
func (f FS) Root() string { return f.root }

// Path returns the absolute path of name.
func (f FS) Path(name string) string {
	if path := f.root + "/" + name; f.root != "/" && filepath.Clean(path) == path {
		return path // the usual case, without a copy
	}
	return filepath.Join(f.root, name)
}

// pages are buffers of one page: a round reads hundreds of attributes.
var pages = sync.Pool{New: func() any { return new([Page]byte) }}

// Read returns the text of an attribute without surrounding newlines, NULs and
// blanks. The error is a *fs.PathError with the kernel's errno; the caller
// decides what ENOENT, EBUSY and ENODATA mean.
func (f FS) Read(name string) (string, error) { return f.ReadText(name, Page) }

// ReadText is Read for at most limit bytes, not more than Page.
func (f FS) ReadText(name string, limit int) (string, error) {
	page := pages.Get().(*[Page]byte)
	defer pages.Put(page)
	n, err := f.fill(name, page[:limit], 1)
	return string(bytes.Trim(page[:n], "\x00 \t\r\n")), err
}

// ReadBytes returns the content of an attribute, at most limit bytes, with as
// many read(2) as needed: one for a text attribute, because a second one would
// call the driver again.
func (f FS) ReadBytes(name string, limit int) ([]byte, error) {
	buf := make([]byte, limit)
	n, err := f.fill(name, buf, 1)
	if err != nil {
		return nil, err
	}
	return buf[:n], nil
}

// ReadLines is Read for a list of at most limit bytes that the driver returns in
// whole lines: a read(2) may then end before the page does. longest is the longest
// line, in bytes: where another one would have fitted, the list has ended.
func (f FS) ReadLines(name string, longest, limit int) (string, error) {
	buf := make([]byte, limit)
	n, err := f.fill(name, buf, longest)
	return string(buf[:n]), err
}

// fill reads until one more piece would have fitted into the page.
func (f FS) fill(name string, buf []byte, piece int) (n int, err error) {
	path := f.Path(name)
	fd, err := open(path)
	if err != nil {
		return 0, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	defer syscall.Close(fd)
	for n < len(buf) {
		m, err := read(fd, buf[n:])
		if err != nil {
			return 0, &fs.PathError{Op: "read", Path: path, Err: err}
		}
		n += m
		// The first read returns a text attribute completely. Binary ones (PCI
		// configuration space, long texts) are returned in pages.
		if m <= Page-piece {
			break
		}
	}
	return n, nil
}

func open(path string) (int, error) {
	for {
		fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC|syscall.O_NONBLOCK, 0)
		if !errors.Is(err, syscall.EINTR) {
			return fd, err
		}
	}
}

func read(fd int, b []byte) (int, error) {
	for {
		n, err := syscall.Read(fd, b)
		if !errors.Is(err, syscall.EINTR) {
			return max(n, 0), err
		}
	}
}

// Names returns the names in a directory, sorted. It opens no file.
func (f FS) Names(dir string) ([]string, error) {
	entries, err := os.ReadDir(f.Path(dir))
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, err
}

// FirstNames returns at most the first most names in a directory, in the order of
// the kernel.
func (f FS) FirstNames(dir string, most int) ([]string, error) {
	d, err := os.Open(f.Path(dir))
	if err != nil {
		return nil, err
	}
	defer d.Close()
	names, err := d.Readdirnames(most)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return names, err
}

// Link returns the last element of the target of a symbolic link: the name of a
// driver, a bus, an IOMMU group.
func (f FS) Link(name string) (string, error) {
	target, err := os.Readlink(f.Path(name))
	if err != nil {
		return "", err
	}
	return filepath.Base(target), nil
}

// Resolve follows every link in name and returns the resulting path, relative
// to the root. A link out of the tree is an error.
func (f FS) Resolve(name string) (string, error) {
	root, err := filepath.EvalSymlinks(f.root)
	if err != nil {
		return "", err
	}
	path, err := filepath.EvalSymlinks(f.Path(name))
	if err != nil {
		return "", err
	}
	rel, err := filepath.Rel(root, path)
	if err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
		return "", &fs.PathError{Op: "resolve", Path: f.Path(name), Err: errors.New("leads out of the tree")}
	}
	return rel, nil
}

// Exists reports whether name exists. It opens nothing.
func (f FS) Exists(name string) bool {
	_, err := os.Lstat(f.Path(name))
	return err == nil
}

// Errno returns the kernel's error in err, 0 where there is none.
func Errno(err error) syscall.Errno {
	if e, ok := errors.AsType[syscall.Errno](err); ok {
		return e
	}
	return 0
}

// PCIAddress reports whether s is the address of a PCI function as the kernel writes
// it: 0000:1b:00.0. Behind a VMD or a hypervisor the domain has more digits.
func PCIAddress(s string) bool {
	domain, rest, ok := strings.Cut(s, ":")
	return ok && len(domain) >= 4 && len(domain) <= 8 && Hex(domain) && len(rest) == len("1b:00.0") &&
		Hex(rest[:2]) && rest[2] == ':' && Hex(rest[3:5]) && rest[5] == '.' && rest[6] >= '0' && rest[6] <= '7'
}

// PCISlot returns the part of an address that all functions of a card have.
func PCISlot(address string) string {
	slot, _, _ := strings.Cut(address, ".")
	return slot
}

// Hex reports whether s is hexadecimal digits in lower case.
func Hex(s string) bool { return s != "" && strings.Trim(s, "0123456789abcdef") == "" }

// hostPIDs is the host's PID namespace: PROC_PID_INIT_INO in the kernel's proc_ns.h.
const hostPIDs = "pid:[4026531836]"

// IsHost reports whether a procfs shows the host's PID namespace, by its first
// process. That requires the permission to trace it.
func (f FS) IsHost() (bool, error) {
	name, err := f.Link("1/ns/pid")
	return name == hostPIDs, err
}

// HostPIDs reports whether this process is in the host's PID namespace, by a procfs of
// any namespace that contains it; known is false where the procfs does not show it.
// Drivers report processes by the PIDs of their caller's namespace.
func HostPIDs(procfs string) (own, known bool) {
	name, err := os.Readlink(filepath.Join(procfs, "self/ns/pid"))
	return name == hostPIDs, err == nil
}
