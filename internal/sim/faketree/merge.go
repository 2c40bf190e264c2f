package faketree

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// Merge adds the files of other to t, so that one machine has both. Where both
// have a device of the same name, or PCI buses of the same number, the devices
// and buses of other get the next free number in all paths, links and uevents,
// as the kernel would number them. It fails, with t unchanged, where names
// without a number conflict.
func (t *Tree) Merge(other *Tree) error {
	add := other.Clone()
	t.mu.Lock()
	defer t.changed()
	blocked := map[*entry]int{}
	for at, gates := range add.blocks {
		if e := add.find(at, false); e != nil {
			blocked[e] = len(gates)
		}
	}
	if err := add.renumber(t); err != nil {
		return err
	}
	if both := slices.Sorted(maps.Keys(common(t.deviceNames(), add.deviceNames()))); len(both) > 0 {
		return fmt.Errorf("both trees have %s", strings.Join(both, ", "))
	}
	if err := conflicts(t.root, add.root); len(err) > 0 {
		return errors.Join(err...)
	}
	t.graft(t.root, add.root)
	for e, gates := range blocked {
		for range gates {
			t.block(e.path())
		}
	}
	return nil
}

// conflicts returns the files that differ in two trees.
func conflicts(a, b *entry) []error {
	var all []error
	for name, y := range b.children {
		switch x := a.children[name]; {
		case x == nil:
		case x.dir() && y.dir():
			all = append(all, conflicts(x, y)...)
		case x.dir() != y.dir() || x.target != y.target || x.content != y.content || x.errno != y.errno:
			all = append(all, fmt.Errorf("%s differs between the trees", x.path()))
		}
	}
	return all
}

func (t *Tree) graft(at, from *entry) {
	for name, e := range from.children {
		if have := at.children[name]; have != nil {
			t.graft(have, e)
			continue
		}
		at.children[name] = t.copy(e, at)
	}
}

// Restore makes a directory and all links into it equal to the same directory
// and links of another tree. Where that tree has no such directory, the device
// is removed.
func (t *Tree) Restore(from *Tree, device string) {
	from = from.Clone()
	from.mu.Lock()
	defer from.mu.Unlock()
	src := from.find(device, true)
	t.Unplug(device)
	if src == nil {
		return
	}
	t.mu.Lock()
	defer t.changed()
	from.root.each(func(e *entry) {
		inside := e == src || strings.HasPrefix(e.path(), src.path()+"/")
		if !inside && e.target != "" {
			to := from.find(e.path(), true)
			inside = to != nil && (to == src || strings.HasPrefix(to.path(), src.path()+"/"))
		}
		if inside && (e == src || !strings.HasPrefix(path.Dir(e.path())+"/", src.path()+"/")) {
			up, base := t.place(e.path())
			up.children[base] = t.copy(e, up)
		}
	})
}
