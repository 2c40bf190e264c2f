package faketree

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
)

// Edit applies the lines of a tree file in their order; name is used in the
// errors. Paths may contain links. Besides the lines of Parse there are
//
//	#base<TAB>FILE               the tree that this edits; see Load
//	#remove<TAB>/path            removes the file or directory
//	#unplug<TAB>/path            removes the device: see Unplug
//	#rename<TAB>/from<TAB>/to    moves the file, link or directory
//
// After an error the tree is unusable.
func (t *Tree) Edit(name string, data []byte) error {
	statements, err := lex(name, data)
	if err != nil {
		return err
	}
	for _, s := range statements {
		if err := t.edit(s); err != nil {
			return fmt.Errorf("%s:%d: %w", name, s.line, err)
		}
	}
	return nil
}

var errNothingThere = errors.New("there is nothing of this path")

func (t *Tree) edit(s statement) error {
	switch s.verb {
	case "#base":
		if s.line > 1 {
			return errors.New("#base stands on the first line")
		}
		return nil
	case "file":
		t.Set(s.path, s.value)
		return nil
	case "link":
		t.Link(s.path, s.value)
		return nil
	case "#dir":
		t.Mkdir(s.path)
		return nil
	case "#rename":
		return t.Rename(s.value, s.path)
	case "#remove":
		if !t.Remove(s.path) {
			return fmt.Errorf("%s: %w", s.path, errNothingThere)
		}
		return nil
	case "#unplug":
		if !t.Unplug(s.path) {
			return fmt.Errorf("%s: %w", s.path, errNothingThere)
		}
		return nil
	case "#err":
		t.SetErr(s.path, errnos[s.value])
		return nil
	case "#mode":
		mode, _ := strconv.ParseUint(s.value, 8, 32) // checked by lex
		t.SetMode(s.path, fs.FileMode(mode))
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.find(s.path, true)
	if e == nil {
		return fmt.Errorf("%s: %w", s.path, errNothingThere)
	}
	return t.property(e, s)
}

// Unplug removes the directory of a device and all links into it, as the kernel
// does when a device goes; false where there is none.
func (t *Tree) Unplug(device string) bool {
	t.mu.Lock()
	defer t.changed()
	e := t.find(device, true)
	if e == nil || e.up == nil {
		return false
	}
	inside := func(at *entry) bool { return at == e || strings.HasPrefix(at.path(), e.path()+"/") }
	var links []*entry
	t.root.each(func(l *entry) {
		if l.target != "" && !inside(l) {
			if to := t.find(l.path(), true); to != nil && inside(to) {
				links = append(links, l)
			}
		}
	})
	for _, l := range append(links, e) {
		delete(l.up.children, l.name)
	}
	return true
}
