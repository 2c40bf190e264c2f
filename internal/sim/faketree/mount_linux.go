package faketree

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// CanMount reports whether trees can be mounted here: by root, with /dev/fuse
// and the kernel's permission.
var CanMount = sync.OnceValue(func() bool {
	if os.Geteuid() != 0 {
		return false
	}
	dir, err := os.MkdirTemp("", "faketree-")
	if err != nil {
		return false
	}
	defer func() { _ = os.Remove(dir) }()
	unmount, err := New().Mount(dir)
	if err != nil {
		return false
	}
	unmount()
	return true
})

// Mount mounts the tree at a directory until unmount is called: /sys/x as
// dir/sys/x. The kernel caches names
// only, and forgets those that change, so the next call sees a change. Writing to a
// file fails with EROFS and is a violation. unmount ends blocked reads with
// EIO; it may be called more than once. A tree can be mounted once at a time.
func (t *Tree) Mount(dir string) (unmount func(), err error) {
	t.mu.Lock()
	t.closed, t.cached = make(chan struct{}), map[place]cached{}
	t.mu.Unlock()
	var zero time.Duration
	long := time.Hour
	server, err := fusefs.Mount(dir, &node{t: t, e: t.root}, &fusefs.Options{
		MountOptions: fuse.MountOptions{
			AllowOther: true, DirectMountStrict: true, FsName: "faketree", Name: "faketree",
			Options: []string{"allow_other"}, DisableXAttrs: true, DisableReadDirPlus: true, MaxBackground: 1024,
			MaxWrite: 2 * page, // of the buffers too; a read of more than a page ends after one
		},
		EntryTimeout: &long, AttrTimeout: &zero, NegativeTimeout: &zero, NullPermissions: true,
	})
	if err != nil {
		return nil, fmt.Errorf("mount %s: %w", dir, err)
	}
	return sync.OnceFunc(func() {
		close(t.closed)
		t.mu.Lock()
		t.cached = nil
		t.mu.Unlock()
		for server.Unmount() != nil {
			// A file or a directory is still open: detach now, and unmount when
			// it is closed.
			if syscall.Unmount(dir, syscall.MNT_DETACH) != nil {
				return
			}
		}
		server.Wait()
	}), nil
}

// node is an entry. Several nodes may have the same entry; none has state.
type node struct {
	fusefs.Inode
	t *Tree
	e *entry
}

var (
	_ fusefs.NodeLookuper   = (*node)(nil)
	_ fusefs.NodeReaddirer  = (*node)(nil)
	_ fusefs.NodeOpendirer  = (*node)(nil)
	_ fusefs.NodeGetattrer  = (*node)(nil)
	_ fusefs.NodeReadlinker = (*node)(nil)
	_ fusefs.NodeOpener     = (*node)(nil)
)

// attr is the answer of stat(2), with the sizes of sysfs.
func (e *entry) attr() fuse.Attr {
	a := fuse.Attr{Ino: e.id, Nlink: 1, Mode: e.kind() | uint32(e.mode), Blksize: page}
	switch {
	case e.target != "":
		a.Size = uint64(len(e.target))
	case !e.dir():
		a.Size = page
	}
	return a
}

func (e *entry) kind() uint32 {
	switch {
	case e.dir():
		return syscall.S_IFDIR
	case e.target != "":
		return syscall.S_IFLNK
	}
	return syscall.S_IFREG
}

// page is the size of every attribute in sysfs, and the most that one read(2)
// returns.
const page = 4096

func (n *node) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	n.t.mu.Lock()
	defer n.t.mu.Unlock()
	e := n.e.children[name]
	if e == nil {
		return nil, syscall.ENOENT
	}
	out.Attr = e.attr()
	if t := n.t; t.cached != nil {
		t.cached[place{n.e, name}] = cached{e, func() { _ = n.NotifyEntry(name) }}
	}
	return n.NewInode(ctx, &node{t: n.t, e: e}, fusefs.StableAttr{Mode: e.kind(), Ino: e.id}), 0
}

func (n *node) Opendir(context.Context) syscall.Errno {
	n.t.mu.Lock()
	defer n.t.mu.Unlock()
	n.t.opened(n.e, false)
	return 0
}

func (n *node) Readdir(context.Context) (fusefs.DirStream, syscall.Errno) {
	n.t.mu.Lock()
	defer n.t.mu.Unlock()
	list := make([]fuse.DirEntry, 0, len(n.e.children))
	for name, e := range n.e.children {
		list = append(list, fuse.DirEntry{Name: name, Ino: e.id, Mode: e.kind()})
	}
	return fusefs.NewListDirStream(list), 0
}

func (n *node) Getattr(_ context.Context, _ fusefs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	n.t.mu.Lock()
	defer n.t.mu.Unlock()
	out.Attr = n.e.attr()
	return 0
}

func (n *node) Readlink(context.Context) ([]byte, syscall.Errno) {
	n.t.mu.Lock()
	defer n.t.mu.Unlock()
	return []byte(n.e.target), 0
}

func (n *node) Open(_ context.Context, flags uint32) (fusefs.FileHandle, uint32, syscall.Errno) {
	n.t.mu.Lock()
	defer n.t.mu.Unlock()
	write := flags&syscall.O_ACCMODE != syscall.O_RDONLY
	n.t.opened(n.e, write)
	switch {
	case write:
		return nil, 0, syscall.EROFS
	case n.e.mode&fs.FileMode(0o444) == 0:
		return nil, 0, syscall.EACCES
	}
	return &handle{node: n}, fuse.FOPEN_DIRECT_IO, 0
}

// handle is an open file. As in the kernel's seq_file, later reads continue the
// content of the first one.
type handle struct {
	*node
	mu      sync.Mutex
	content string
}

var (
	_ fusefs.FileReader  = (*handle)(nil)
	_ fusefs.FileFlusher = (*handle)(nil)
)

// Flush is not implemented, so the kernel asks once and then closes files by itself.
func (h *handle) Flush(context.Context) syscall.Errno { return syscall.ENOSYS }

// Read ignores interrupts, as a driver that waits for its hardware does.
func (h *handle) Read(_ context.Context, dest []byte, off int64) (fuse.ReadResult, syscall.Errno) {
	h.mu.Lock()
	defer h.mu.Unlock()
	content, lines, errno := h.t.read(h.e)
	if errno != 0 {
		return nil, errno
	}
	if off == 0 {
		h.content = content
	}
	rest := h.content[min(off, int64(len(h.content))):]
	rest = rest[:min(len(rest), len(dest), page)]
	if lines {
		rest = rest[:strings.LastIndexByte(rest, '\n')+1]
	}
	return fuse.ReadResultData([]byte(rest)), 0
}

// read returns the answer of one read(2), after all gates have opened.
func (t *Tree) read(e *entry) (content string, lines bool, errno syscall.Errno) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reads[e.path()]++
	for {
		gate, closed := t.blocked(e.path()), t.closed
		if gate == nil {
			break
		}
		t.mu.Unlock()
		select {
		case <-gate:
		case <-closed:
		}
		t.mu.Lock()
		select {
		case <-closed:
			return "", false, syscall.EIO
		default:
		}
	}
	// The device was removed while the file was open.
	for at := e; at.up != nil; at = at.up {
		if at.up.children[at.name] != at {
			return "", false, syscall.ENODEV
		}
	}
	return e.content, e.lines, e.errno
}
