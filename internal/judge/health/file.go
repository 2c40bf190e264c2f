package health

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/config/strict"
	"github.com/accel-exporter/accel-exporter/internal/config/strict/wording"
)

// file is the format of a catalogue file.
type file struct {
	Sources    map[string]string `yaml:"sources"`
	Unknown    unknown           `yaml:"unknown"`
	Xid        []Entry           `yaml:"xid"`
	SXid       []Entry           `yaml:"sxid"`
	Events     []Entry           `yaml:"events"`
	Conditions []Condition       `yaml:"conditions"`

	base *Catalogue // the catalogue that the file changes
}

// unknown is the entry for codes that have none.
type unknown struct {
	Text     string   `yaml:"text"`
	Severity Severity `yaml:"severity"`
	Action   Action   `yaml:"action"`
	Ends     Ends     `yaml:"ends"`
}

// Check ensures that an unknown code is at most a warning.
func (u *unknown) Check() error {
	if u.Severity == Failed {
		return errors.New("found severity failed for unknown codes; accepted is none or degraded")
	}
	return checkWords("", u.Text)
}

// Check validates the entries against each other.
func (f *file) Check() error {
	for _, l := range []struct {
		name string
		list []Entry
	}{{"xid", f.Xid}, {"sxid", f.SXid}, {"events", f.Events}} {
		if err := checkEntries(l.name, l.list); err != nil {
			return err
		}
		for i := range l.list {
			for n, reason := range l.list[i].While {
				if !f.defines(reason) {
					return strict.At(fmt.Errorf("found condition %s; accepted is the reason of a condition", wording.Quote(reason)), l.name, i, "while", n)
				}
			}
			if reason := l.list[i].SameAs; reason != "" && !f.defines(reason) {
				return strict.At(fmt.Errorf("found condition %s; accepted is the reason of a condition", wording.Quote(reason)), l.name, i, "same_as")
			}
			for n, kind := range l.list[i].Heals {
				if kind != "reset" && !f.judges(kind) {
					return strict.At(fmt.Errorf("found event %s; accepted is reset or an event of the catalogue", wording.Quote(kind)), l.name, i, "heals", n)
				}
			}
		}
	}
	if len(f.Conditions) > maxConditions {
		return strict.At(fmt.Errorf("found %d conditions; accepted are at most %d", len(f.Conditions), maxConditions), "conditions")
	}
	seen := map[string]int{}
	for i := range f.Conditions {
		reason := f.Conditions[i].Reason
		if first, again := seen[reason]; again {
			return strict.At(fmt.Errorf("found %s a second time, first in conditions[%d]; accepted is once", reason, first), "conditions", i)
		}
		seen[reason] = i
	}
	return nil
}

// defines reports whether a condition with that reason exists.
func (f *file) defines(reason string) bool {
	_, known := f.base.condition(reason)
	return known || slices.ContainsFunc(f.Conditions, func(c Condition) bool { return c.Reason == reason })
}

// judges reports whether an entry for events of that kind exists.
func (f *file) judges(kind string) bool {
	return f.base.entries[id{kind: collector.EventKind(kind)}] != nil || slices.ContainsFunc(f.Events, func(e Entry) bool { return e.Event == kind })
}

func checkEntries(name string, list []Entry) error {
	if len(list) > maxEntries {
		return strict.At(fmt.Errorf("found %d entries; accepted are at most %d", len(list), maxEntries), name)
	}
	seen := map[id]int{}
	for i := range list {
		e := &list[i]
		if (e.Event != "") != (name == "events") {
			return strict.At(fmt.Errorf("found %s; accepted is code in xid and sxid, event in events", e.which()), name, i)
		}
		k := id{collector.EventKind(e.Event), e.Code, e.Sub}
		if first, again := seen[k]; again {
			return strict.At(fmt.Errorf("found %s a second time, first in %s[%d]; accepted is once", e.which(), name, first), name, i)
		}
		seen[k] = i
	}
	return nil
}

func (e *Entry) which() string {
	s := e.Event
	if s == "" {
		s = fmt.Sprintf("code %d", e.Code)
	}
	if e.Sub != "" {
		s += " sub " + e.Sub
	}
	return s
}

// with returns c with the changes of a file.
func (c *Catalogue) with(name string, data []byte) (*Catalogue, error) {
	f := file{base: c}
	if err := strict.Decode(name, data, &f); err != nil {
		return nil, err
	}
	n := &Catalogue{Sources: map[string]string{}, entries: maps.Clone(c.entries)}
	if n.entries == nil {
		n.entries = map[id]*entry{}
	}
	for _, sources := range []map[string]string{c.Sources, f.Sources} {
		maps.Copy(n.Sources, sources)
	}
	n.unknown.Entry = over(c.unknown.Entry, Entry{Text: f.Unknown.Text, Severity: f.Unknown.Severity, Action: f.Unknown.Action, Ends: f.Unknown.Ends})
	for _, l := range []struct {
		kind collector.EventKind
		list []Entry
	}{{collector.EventXid, f.Xid}, {collector.EventSXid, f.SXid}, {"", f.Events}} {
		for i := range l.list {
			n.put(l.kind, &l.list[i])
		}
	}
	if err := n.layOut(c, f.Conditions); err != nil {
		return nil, err
	}
	n.resolve()
	return n, nil
}

// resolve looks up the conditions that entries name, and the codes with
// sub-codes.
func (c *Catalogue) resolve() {
	c.subs = map[uint64]bool{}
	for k, e := range c.entries {
		if k.kind == collector.EventXid && k.sub != "" {
			c.subs[uint64(k.code)] = true
		}
		if len(e.While) == 0 && e.SameAs == "" {
			continue
		}
		r := *e
		if t, known := c.condition(e.SameAs); known {
			r.sameAs = t.index
		}
		r.while = nil
		for _, reason := range e.While {
			if t, known := c.condition(reason); known {
				r.while = append(r.while, t.index)
			}
		}
		c.entries[k] = &r
	}
}

// put adds or changes an entry. A new Sub is based on the entry of its code.
func (c *Catalogue) put(kind collector.EventKind, e *Entry) {
	if kind == "" {
		kind = collector.EventKind(e.Event)
	}
	k := id{kind, e.Code, e.Sub}
	base := c.entries[k]
	if base == nil {
		base = c.entries[id{kind, e.Code, ""}]
	}
	if base == nil {
		base = &c.unknown
	}
	c.entries[k] = &entry{Entry: over(base.Entry, *e), reason: reasonOf(k)}
}

// reasonOf returns the reason code of an entry.
func reasonOf(k id) string {
	r := "event_" + string(k.kind)
	if k.kind == collector.EventXid || k.kind == collector.EventSXid {
		r = fmt.Sprintf("%s_%d", k.kind, k.code)
	}
	if k.sub != "" {
		r += "_" + k.sub
	}
	return r
}

// layOut sets the conditions to the conditions of base with the changes applied.
func (c *Catalogue) layOut(base *Catalogue, changes []Condition) error {
	var list []*Condition
	for _, t := range base.conditions {
		list = append(list, t.Condition)
	}
	for i := range changes {
		o := &changes[i]
		at := slices.IndexFunc(list, func(known *Condition) bool { return known.Reason == o.Reason })
		switch {
		case at < 0:
			list = append(list, o)
		case o.Family == "":
			changed := over(*list[at], *o)
			list[at] = &changed
		default:
			list[at] = o
		}
	}
	rows := len(collector.Table())
	c.tests, c.thans = make([][]*test, rows), make([][]*test, rows)
	for i, o := range list {
		t, err := compile(o)
		if err != nil {
			return fmt.Errorf("condition %s: %w", o.Reason, err)
		}
		t.index = i
		c.conditions = append(c.conditions, t)
		c.tests[t.metric.Index()] = append(c.tests[t.metric.Index()], t)
		if t.than != nil {
			c.thans[t.than.Index()] = append(c.thans[t.than.Index()], t)
		}
	}
	return nil
}
