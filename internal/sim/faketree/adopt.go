package faketree

import (
	"maps"
	"slices"
	"strings"
)

// Adopt makes t the same tree as from, including blocks: gates that from does
// not have are opened. Files that remain stay the same for processes that have
// them open. Counts and forbidden paths are kept.
func (t *Tree) Adopt(from *Tree) {
	from = from.Clone()
	t.mu.Lock()
	defer t.changed()
	t.adopt(t.root, from.root)
	for at, gates := range t.blocks {
		for len(gates) > len(from.blocks[at]) {
			close(gates[0])
			gates = gates[1:]
		}
		t.blocks[at] = gates
	}
	for at, gates := range from.blocks {
		for len(t.blocks[at]) < len(gates) {
			t.block(at)
		}
	}
}

func (t *Tree) adopt(e, from *entry) {
	e.target, e.content, e.errno, e.mode, e.lines, e.notes = from.target, from.content, from.errno, from.mode, from.lines, from.notes
	if !from.dir() {
		return
	}
	maps.DeleteFunc(e.children, func(name string, _ *entry) bool { return from.children[name] == nil })
	for name, f := range from.children {
		have := e.children[name]
		if have == nil || have.dir() != f.dir() || (have.target == "") != (f.target == "") {
			e.children[name] = t.copy(f, e)
			continue
		}
		t.adopt(have, f)
	}
}

// Blocked returns the paths at which reads wait, sorted, one per gate.
func (t *Tree) Blocked() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []string
	for at, gates := range t.blocks {
		out = append(out, slices.Repeat([]string{at}, len(gates))...)
	}
	slices.Sort(out)
	return out
}

// Unblock opens all gates at a path and below it.
func (t *Tree) Unblock(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	within := clean(name)
	if e := t.find(name, true); e != nil {
		within = e.path()
	}
	for at, gates := range t.blocks {
		if at == within || strings.HasPrefix(at, strings.TrimSuffix(within, "/")+"/") {
			for _, gate := range gates {
				close(gate)
			}
			delete(t.blocks, at)
		}
	}
}
