package health

import (
	"slices"
	"strings"
)

// Entries returns every entry, sorted by kind, code and sub.
func (c *Catalogue) Entries() []Entry {
	keys := make([]id, 0, len(c.entries))
	for k := range c.entries {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b id) int {
		if a.kind != b.kind {
			return strings.Compare(string(b.kind), string(a.kind)) // Xids first
		}
		if a.code != b.code {
			return a.code - b.code
		}
		return strings.Compare(a.sub, b.sub)
	})
	out := make([]Entry, len(keys))
	for i, k := range keys {
		out[i] = c.entries[k].Entry
	}
	return out
}
