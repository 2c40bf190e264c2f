// Package health determines the health of every device, the reasons, and the
// recommended action.
//
// The recovery action of the driver comes first, then events, by a catalogue of
// Xids and SXids that a file can override, then conditions on readings. A reason
// counts while it is true, or until a reset if the vendor documents that nothing
// else clears it. Application errors never affect the device, an unknown code is
// a warning, and a device that cannot be observed is unknown, never healthy.
package health

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/config/strict"
)

//go:embed catalogue.yaml
var embedded []byte

// Catalogue maps events and readings to verdicts. It is immutable.
type Catalogue struct {
	// Sources are the titles of the references of the entries, by key.
	Sources    map[string]string
	unknown    entry
	entries    map[id]*entry
	subs       map[uint64]bool // Xids with entries for sub-codes
	conditions []*test
	// tests are the conditions by the Index of their metric; thans are the
	// conditions that compare with that metric.
	tests, thans [][]*test
}

// id identifies an Entry.
type id struct {
	kind collector.EventKind
	code int
	sub  string
}

// Builtin returns the built-in catalogue.
func Builtin() *Catalogue { return builtin() }

var builtin = sync.OnceValue(func() *Catalogue {
	var f file
	if err := strict.Decode("catalogue.yaml", embedded, &f); err != nil {
		panic(err) // embedded, and tested
	}
	return f.catalogue()
})

// Load returns the built-in catalogue with the changes of the file at path. The
// file is applied completely or not at all; an error in it is of type
// strict.Mistakes and names line and key.
func Load(path string) (*Catalogue, error) {
	data, err := strict.NewFile(path).Read()
	if err != nil {
		return nil, fmt.Errorf("health catalogue: %w", err)
	}
	return Parse(path, data)
}

// Parse is Load for the content of a file; name stands for it in errors.
func Parse(name string, data []byte) (*Catalogue, error) {
	var o overrides
	if err := strict.Decode(name, data, &o); err != nil {
		return nil, err
	}
	return Builtin().with(&o), nil
}

func (c *Catalogue) condition(reason string) (*test, bool) {
	for _, t := range c.conditions {
		if t.Reason == reason {
			return t, true
		}
	}
	return nil, false
}

// Conditions returns the conditions, in the order of the catalogue.
func (c *Catalogue) Conditions() []Condition {
	out := make([]Condition, len(c.conditions))
	for i, t := range c.conditions {
		out[i] = *t.Condition
	}
	return out
}

// Reasons returns the values that the label reason of
// accel_device_health_reason can have with the catalogue, sorted.
func (c *Catalogue) Reasons() []string {
	all := []string{NoAnswer, NoFaultSource, unknownReason(collector.EventXid), unknownReason(collector.EventSXid), unknownReason("")}
	for _, r := range recoveryActions {
		all = append(all, r.code)
	}
	for _, e := range c.entries {
		all = append(all, e.reason)
	}
	for _, t := range c.conditions {
		all = append(all, t.Reason)
	}
	slices.Sort(all)
	return all
}

// Lookup returns the entry of an event, and whether the catalogue has one. An
// event whose Sub has no entry is judged by its code.
func (c *Catalogue) Lookup(e *collector.Event) (*Entry, bool) {
	found, known := c.lookup(e)
	return &found.Entry, known
}

func (c *Catalogue) lookup(e *collector.Event) (*entry, bool) {
	k := id{kind: e.Kind}
	if e.Kind == collector.EventXid || e.Kind == collector.EventSXid {
		k.code = int(min(e.Code, 1<<31-1))
	}
	if seenByDriverOnly(e) || e.Kind == collector.EventXid && e.Sub == collector.SubFatal {
		k.sub = noSubCode
		if found := c.entries[k]; found != nil {
			return found, true
		}
		k.sub = ""
	}
	if e.Sub != "" {
		// "RLW_REMAP:0x4" is judged as RLW_REMAP if that error has no entry.
		unit, _, _ := strings.Cut(e.Sub, ":")
		unit, _, _ = strings.Cut(unit, "/")
		for _, sub := range []string{e.Sub, unit} {
			k.sub = subToken(sub)
			if found := c.entries[k]; found != nil {
				return found, true
			}
		}
		k.sub = ""
	}
	if found := c.entries[k]; found != nil {
		return found, true
	}
	return &c.unknown, false
}

// subToken returns a Sub in the format of the catalogue: lower case, with other
// characters than letters and digits replaced by one underscore.
func subToken(s string) string {
	var b strings.Builder
	gap := false
	for _, r := range strings.ToLower(s) {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			if gap && b.Len() > 0 {
				b.WriteByte('_')
			}
			b.WriteRune(r)
			gap = false
		} else {
			gap = true
		}
	}
	return b.String()
}
