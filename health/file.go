package health

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/strict"
)

// file is the form of a catalogue on disk.
type file struct {
	Sources    map[string]string `yaml:"sources"`
	Unknown    unknown           `yaml:"unknown"`
	Xid        []Entry           `yaml:"xid"`
	SXid       []Entry           `yaml:"sxid"`
	Events     []Entry           `yaml:"events"`
	Conditions []Condition       `yaml:"conditions"`
}

// unknown is what is said of codes that no entry names.
type unknown struct {
	Text     string   `yaml:"text"`
	Severity Severity `yaml:"severity"`
	Action   Action   `yaml:"action"`
	Ends     Ends     `yaml:"ends"`
}

// Check keeps an unknown code from being more than a warning.
func (u *unknown) Check() error {
	if u.Severity == Failed {
		return errors.New("found severity failed for codes that nobody knows; accepted is none or degraded")
	}
	return checkWords("", u.Text)
}

// Check finds what is wrong between the entries.
func (f *file) Check() error {
	for _, l := range []struct {
		name string
		list []Entry
	}{{"xid", f.Xid}, {"sxid", f.SXid}, {"events", f.Events}} {
		if err := checkEntries(l.name, l.list); err != nil {
			return err
		}
	}
	if len(f.Conditions) > maxConditions {
		return fmt.Errorf("found %d conditions; accepted are at most %d", len(f.Conditions), maxConditions)
	}
	seen := map[string]int{}
	for i := range f.Conditions {
		reason := f.Conditions[i].Reason
		if reason == "" {
			return fmt.Errorf("found nothing in conditions[%d]; accepted is a condition", i)
		}
		if first, again := seen[reason]; again {
			return fmt.Errorf("found %s in conditions[%d] a second time, first in conditions[%d]; accepted is once", reason, i, first)
		}
		seen[reason] = i
	}
	return nil
}

func checkEntries(name string, list []Entry) error {
	if len(list) > maxEntries {
		return fmt.Errorf("found %d entries of %s; accepted are at most %d", len(list), name, maxEntries)
	}
	seen := map[id]int{}
	for i := range list {
		e := &list[i]
		if e.Code == 0 && e.Event == "" {
			return fmt.Errorf("found nothing in %s[%d]; accepted is an entry", name, i)
		}
		if (e.Event != "") != (name == "events") {
			return fmt.Errorf("found %s in %s[%d]; accepted is code in xid and sxid, event in events", e.which(), name, i)
		}
		k := id{collector.EventKind(e.Event), e.Code, e.Sub}
		if first, again := seen[k]; again {
			return fmt.Errorf("found %s in %s[%d] a second time, first in %s[%d]; accepted is once", e.which(), name, i, name, first)
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
	var f file
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
	n.unknown.Entry = c.unknown.over(&Entry{Text: f.Unknown.Text, Severity: f.Unknown.Severity, Action: f.Unknown.Action, Ends: f.Unknown.Ends})
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
	if err := n.resolve(name, data); err != nil {
		return nil, err
	}
	return n, nil
}

// resolve finds the conditions that entries name.
func (c *Catalogue) resolve(name string, data []byte) error {
	for k, e := range c.entries {
		if len(e.While) == 0 {
			continue
		}
		r := *e
		r.while = nil
		for _, reason := range e.While {
			t, known := c.condition(reason)
			if !known {
				line := 1 + strings.Count(string(data[:max(0, strings.Index(string(data), reason))]), "\n")
				return strict.Mistakes{{File: name, Line: line, Path: "while", Text: "found condition " + strict.Quote(reason) + "; accepted is the reason of a condition"}}
			}
			r.while = append(r.while, t.index)
		}
		c.entries[k] = &r
	}
	return nil
}

// put adds an entry, or changes the one that is there. A Sub that is new rests
// on the entry of its code.
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
	n := base.over(e)
	n.Code, n.Event, n.Sub = e.Code, e.Event, e.Sub
	c.entries[k] = &entry{Entry: n, reason: reasonOf(k)}
}

// reasonOf is the code of the reason that an entry gives.
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

// layOut sets the conditions to those of base with the changes given.
func (c *Catalogue) layOut(base *Catalogue, changes []Condition) error {
	var list []*Condition
	for _, t := range base.conditions {
		list = append(list, t.Condition)
	}
	for i := range changes {
		o := &changes[i]
		if at := slices.IndexFunc(list, func(known *Condition) bool { return known.Reason == o.Reason }); at >= 0 {
			list[at] = list[at].over(o)
		} else {
			list = append(list, o)
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
