package health

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
)

// settle is how long after an event the driver has had to state what it asks
// for, and readings to show what the event told.
const settle = 30 * time.Second

// fault is what an event told that speaks against a device.
type fault struct {
	event       collector.Event // the first
	entry       *entry
	reason      string
	text        string
	first, last time.Time
	n           int
	past        bool // told by a log from before the start, and not since
}

// hear takes an event of the device. loaded is when its driver was last
// loaded.
func (st *device) hear(c *Catalogue, e *collector.Event, loaded time.Time) {
	if asked := actionOf(e.Action); asked != unasked && !e.Time.Before(loaded) {
		st.driverTold(asked, e.Time)
	}
	again := len(e.Witnesses) > 0
	if again && e.Sub == "" && e.Cause == 0 {
		return // the second witness knows no more
	}
	entry, known := c.lookup(e)
	if as, ok := stands(entry, e); ok {
		// That fault has been told of itself, except where its event was lost.
		if entry, known = c.lookup(&as); entry.Class == "consequence" || st.has(reasonFor(entry, known, &as)) {
			return
		}
		e = &as
	}
	if again && entry.Sub != "" {
		st.refine(entry, e)
	}
	for _, code := range entry.Cures {
		st.faults = slices.DeleteFunc(st.faults, func(f *fault) bool { return f.entry.Code == code && f.event.Kind == e.Kind })
	}
	if entry.Severity == None || entry.Ends.Reset && e.Time.Before(loaded) {
		return
	}
	st.add(entry, reasonFor(entry, known, e), e, again)
}

// stands returns the Xid that e stands for, where it does: the cause of a
// consequence, or what NVML and the kernel tell of in their own words.
func stands(entry *entry, e *collector.Event) (collector.Event, bool) {
	as := *e
	as.Kind, as.Sub, as.Action, as.Cause = collector.EventXid, "", "", 0
	switch {
	case entry.As != 0:
		as.Code = uint64(entry.As)
	case entry.Class == "consequence" && e.Cause != 0:
		as.Code = e.Cause
	default:
		return as, false
	}
	return as, true
}

// refine takes back what was made of the event while its sub-code was not
// known.
func (st *device) refine(entry *entry, e *collector.Event) {
	plain := reasonOf(id{e.Kind, entry.Code, ""})
	st.faults = slices.DeleteFunc(st.faults, func(f *fault) bool { return f.reason == plain && f.n == 1 })
}

// reasonFor is the code of the reason that an event gives.
func reasonFor(entry *entry, known bool, e *collector.Event) string {
	if known {
		return entry.reason
	}
	return unknownReason(e.Kind)
}

// unknownReason is the code of the reason that events give of which the
// catalogue does not know. They share one, so that the set stays closed.
func unknownReason(kind collector.EventKind) string {
	if kind == collector.EventXid || kind == collector.EventSXid {
		return string(kind) + "_unknown"
	}
	return "event_unknown"
}

func (st *device) has(reason string) bool {
	return slices.ContainsFunc(st.faults, func(f *fault) bool { return f.reason == reason })
}

// add notes the event as a fault, or as another one of a fault; again says that
// it has been told before.
func (st *device) add(entry *entry, reason string, e *collector.Event, again bool) {
	for _, f := range st.faults {
		if f.reason != reason {
			continue
		}
		if !again {
			f.n++
		}
		f.last = later(f.last, e.Time)
		f.past = f.past && e.Past
		return
	}
	f := &fault{event: *e, entry: entry, reason: reason, first: e.Time, last: e.Time, n: 1, past: e.Past}
	f.text = faultText(f)
	if len(st.faults) >= maxFaults {
		st.faults = slices.Delete(st.faults, st.mildest(), st.mildest()+1)
	}
	st.faults = append(st.faults, f)
}

// mildest returns the oldest of the faults that weigh least.
func (st *device) mildest() int {
	at := 0
	for i, f := range st.faults {
		if f.entry.Severity < st.faults[at].entry.Severity {
			at = i
		}
	}
	return at
}

// faultText says what happened, without how often.
func faultText(f *fault) string {
	var b strings.Builder
	switch f.event.Kind {
	case collector.EventXid:
		fmt.Fprintf(&b, "Xid %d", f.event.Code)
	case collector.EventSXid:
		fmt.Fprintf(&b, "SXid %d", f.event.Code)
	default:
		b.WriteString("event " + string(f.event.Kind))
	}
	if f.entry.Sub != "" {
		b.WriteString(" " + f.entry.Sub)
	}
	b.WriteString(": " + f.entry.Text)
	if f.entry.reason == "" && f.event.Detail != "" {
		b.WriteString(": " + f.event.Detail)
	}
	return b.String()
}

// finding is the fault as a reason, by what the device says now.
func (f *fault) finding(l *look) finding {
	out := finding{reason: f.reason, severity: f.entry.Severity, action: f.entry.Action, rank: rankEvent, since: f.first, fault: f, n: f.n}
	// The driver has had its say after the event and asks for nothing. It
	// works; what the catalogue asks for can wait.
	out.overruled = f.entry.Severity == Failed && l.answers && l.driver == NoAction && !l.sampled.Before(f.last.Add(settle)) &&
		(f.past || f.entry.Rules == "driver")
	if out.overruled {
		out.severity = Degraded
	}
	return out
}

// cure ends what a reset, or a load of the driver, before t has ended.
func (st *device) cure(t time.Time) {
	st.faults = slices.DeleteFunc(st.faults, func(f *fault) bool { return f.entry.Ends.Reset && !f.last.After(t) })
	if !st.told.After(t) {
		st.driver, st.told = unasked, time.Time{}
	}
}

// expire ends faults that are over by now.
func (st *device) expire(l *look, now time.Time) {
	st.faults = slices.DeleteFunc(st.faults, func(f *fault) bool {
		settled := l.answers && !l.sampled.Before(f.last.Add(settle))
		switch e := f.entry.Ends; {
		case e.Answer && settled, e.After > 0 && now.Sub(f.last) >= e.After:
			return true
		}
		if !settled {
			return false
		}
		read := false
		for _, i := range f.entry.while {
			if l.hits[i].n > 0 {
				return false
			}
			read = read || l.hits[i].total > 0
		}
		return read
	})
}
