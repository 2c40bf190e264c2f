package health

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/config/strict"
	"github.com/accel-exporter/accel-exporter/internal/config/strict/wording"
)

// file is the format of the built-in catalogue.
type file struct {
	Sources    map[string]string `yaml:"sources"`
	Unknown    unknown           `yaml:"unknown"`
	Xid        []Entry           `yaml:"xid"`
	SXid       []Entry           `yaml:"sxid"`
	Events     []Entry           `yaml:"events"`
	Conditions []Condition       `yaml:"conditions"`
}

// overrides is the format of a file that changes the catalogue. An omitted key
// keeps its value.
type overrides struct {
	Unknown    unknown           `yaml:"unknown"`
	Xid        []change          `yaml:"xid"`
	SXid       []change          `yaml:"sxid"`
	Events     []change          `yaml:"events"`
	Conditions []conditionChange `yaml:"conditions"`
}

// change changes one Entry, whose fields it has. A code that the catalogue does not
// have starts from the entry of unknown codes.
type change struct {
	Code     int           `yaml:"code" accept:"1..99999999"`
	Event    string        `yaml:"event"`
	Sub      string        `yaml:"sub"`
	Text     string        `yaml:"text"`
	Severity Severity      `yaml:"severity"`
	Action   Action        `yaml:"action"`
	Ends     Ends          `yaml:"ends"`
	Grace    time.Duration `yaml:"grace" accept:"1s..1h"`
}

func (c *change) entry() *Entry {
	return &Entry{Code: c.Code, Event: c.Event, Sub: c.Sub, Text: c.Text, Severity: c.Severity, Action: c.Action, Ends: c.Ends, Grace: c.Grace}
}

// conditionChange changes one Condition, whose fields it has.
type conditionChange struct {
	Reason   string        `yaml:"reason"`
	Text     string        `yaml:"text"`
	Severity Severity      `yaml:"severity"`
	Action   Action        `yaml:"action"`
	For      time.Duration `yaml:"for" accept:"1s..168h"`
	Lasts    time.Duration `yaml:"lasts" accept:"1s..168h"`
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
	return checkText(u.Text)
}

// Check rejects values that are invalid in a label or on a line.
func (c *change) Check() error {
	if (c.Code == 0) == (c.Event == "") {
		return errors.New("found neither code nor event, or both; accepted is one of them")
	}
	if c.Event != "" && !token.MatchString(c.Event) {
		return fmt.Errorf("found event %s; accepted is lower snake case", wording.Quote(c.Event))
	}
	if subToken(c.Sub) != c.Sub {
		return fmt.Errorf("found sub %s; accepted is lower snake case: %s", wording.Quote(c.Sub), subToken(c.Sub))
	}
	return checkText(c.Text)
}

// Check rejects a condition that the catalogue does not have.
func (c *conditionChange) Check() error {
	if _, known := builtin().condition(c.Reason); !known {
		return strict.At(fmt.Errorf("found %s; accepted is the reason of a condition of the catalogue", wording.Quote(c.Reason)), "reason")
	}
	return checkText(c.Text)
}

// Check rejects a second change of the same entry.
func (o *overrides) Check() error {
	for _, l := range []struct {
		name string
		list []change
	}{{"xid", o.Xid}, {"sxid", o.SXid}, {"events", o.Events}} {
		for i := range l.list {
			c := &l.list[i]
			if (c.Event != "") != (l.name == "events") {
				return strict.At(errors.New("found code or event in the wrong list; accepted is code in xid and sxid, event in events"), l.name, i)
			}
			same := func(b change) bool { return b.Code == c.Code && b.Event == c.Event && b.Sub == c.Sub }
			if first := slices.IndexFunc(l.list, same); first < i {
				return strict.At(fmt.Errorf("found a second time, first in %s[%d]; accepted is once", l.name, first), l.name, i)
			}
		}
	}
	return nil
}

// catalogue returns the catalogue in f. It panics on a mistake: the file is embedded.
func (f *file) catalogue() *Catalogue {
	c := &Catalogue{Sources: f.Sources, entries: map[id]*entry{}}
	c.unknown.Entry = f.Unknown.entry()
	for i := range f.Xid {
		c.put(collector.EventXid, &f.Xid[i])
	}
	for i := range f.SXid {
		c.put(collector.EventSXid, &f.SXid[i])
	}
	for i := range f.Events {
		c.put(collector.EventKind(f.Events[i].Event), &f.Events[i])
	}
	c.layOut(f.Conditions)
	c.resolve()
	return c
}

func (u *unknown) entry() Entry {
	return Entry{Text: u.Text, Severity: u.Severity, Action: u.Action, Ends: u.Ends}
}

// with returns c with the changes of a file.
func (c *Catalogue) with(o *overrides) *Catalogue {
	n := &Catalogue{Sources: c.Sources, entries: maps.Clone(c.entries)}
	n.unknown.Entry = over(c.unknown.Entry, o.Unknown.entry())
	for i := range o.Xid {
		n.put(collector.EventXid, o.Xid[i].entry())
	}
	for i := range o.SXid {
		n.put(collector.EventSXid, o.SXid[i].entry())
	}
	for i := range o.Events {
		n.put(collector.EventKind(o.Events[i].Event), o.Events[i].entry())
	}
	conditions := c.Conditions()
	for _, x := range o.Conditions {
		t, _ := c.condition(x.Reason)
		conditions[t.index] = over(conditions[t.index], Condition{Text: x.Text, Severity: x.Severity, Action: x.Action, For: x.For, Lasts: x.Lasts})
	}
	n.layOut(conditions)
	n.resolve()
	return n
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

// layOut sets the conditions.
func (c *Catalogue) layOut(list []Condition) {
	rows := len(collector.Table())
	c.tests, c.thans = make([][]*test, rows), make([][]*test, rows)
	for i := range list {
		t := compile(&list[i])
		t.index = i
		c.conditions = append(c.conditions, t)
		c.tests[t.metric.Index()] = append(c.tests[t.metric.Index()], t)
		if t.than != nil {
			c.thans[t.than.Index()] = append(c.thans[t.than.Index()], t)
		}
	}
}
