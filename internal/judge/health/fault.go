package health

import (
	"fmt"
	"slices"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
)

// settle is the time after an event within which the driver reports its recovery
// action and readings show the effect of the event.
const settle = 30 * time.Second

// assumedFor is how long a fault without its sub-code counts where the driver
// recommends no action: then it was a harmless one, or it has been handled.
const assumedFor = time.Hour

// fault is a fault of a device that an event reported.
type fault struct {
	event       collector.Event // the first
	entry       *entry
	reason      string
	text        string
	first, last time.Time
	n           int
	past        bool // only reported in a log from before the start
}

// apply processes an event of the device.
func (st *device) apply(c *Catalogue, e *collector.Event) {
	if action := actionOf(e.Action); action != unsetAction && !e.Time.Before(st.loaded) {
		st.setDriver(action, e.Time)
	}
	if e.Kind == collector.EventOperational && e.Cause != 0 {
		return // the same incident as that Xid, which is judged by its number
	}
	again := len(e.Witnesses) > 0
	if again && e.Sub == "" && e.Cause == 0 && !st.has(reasonOf(id{e.Kind, int(e.Code), noSubCode})) {
		return // the second report adds nothing
	}
	entry, known := c.lookup(e)
	if as, ok := equivalent(entry, e); ok && !st.foreign {
		// That fault has a separate event, unless the event was lost.
		if entry, known = c.lookup(&as); entry.Class == "consequence" || st.has(reasonFor(entry, known, &as)) {
			return
		}
		e = &as
	}
	if again {
		st.refine(entry, e)
	}
	for _, code := range entry.Cures {
		st.faults = slices.DeleteFunc(st.faults, func(f *fault) bool { return f.entry.Code == code && f.event.Kind == e.Kind })
	}
	for _, kind := range entry.Heals {
		if kind == "reset" {
			st.cure(e.Time, false)
		}
		st.faults = slices.DeleteFunc(st.faults, func(f *fault) bool { return string(f.event.Kind) == kind && !f.last.After(e.Time) })
	}
	if st.cured(entry, e) {
		return
	}
	if entry.Severity == None || (entry.Ends.Reset || entry.Ends.Load) && e.Time.Before(st.loaded) {
		return
	}
	st.add(entry, reasonFor(entry, known, e), e, again)
}

// equivalent returns the Xid that e is equivalent to, if any: the cause of a
// consequence, or an event that NVML or the kernel reports under another name.
func equivalent(entry *entry, e *collector.Event) (collector.Event, bool) {
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

// refine removes the fault that the event caused before the kernel log reported it.
func (st *device) refine(entry *entry, e *collector.Event) {
	assumed, plain := reasonOf(id{e.Kind, entry.Code, noSubCode}), ""
	if entry.Sub != "" {
		plain = reasonOf(id{e.Kind, entry.Code, ""})
	}
	st.faults = slices.DeleteFunc(st.faults, func(f *fault) bool { return (f.reason == plain || f.reason == assumed) && f.n == 1 })
}

// reasonFor returns the reason code of an event.
func reasonFor(entry *entry, known bool, e *collector.Event) string {
	if known {
		return entry.reason
	}
	return unknownReason(e.Kind)
}

// unknownReason returns the reason code of events that are not in the catalogue.
// They share one, so that the set of codes stays closed.
func unknownReason(kind collector.EventKind) string {
	if kind == collector.EventXid || kind == collector.EventSXid {
		return string(kind) + "_unknown"
	}
	return "event_unknown"
}

func (st *device) has(reason string) bool {
	return slices.ContainsFunc(st.faults, func(f *fault) bool { return f.reason == reason })
}

// cured reports whether a fault that cures the event came within its grace: the
// reports of one incident come in any order.
func (st *device) cured(entry *entry, e *collector.Event) bool {
	return slices.ContainsFunc(st.faults, func(f *fault) bool {
		return slices.Contains(f.entry.Cures, entry.Code) && f.event.Kind == e.Kind && e.Time.Sub(f.last).Abs() < entry.Grace
	})
}

// add records the event as a fault, or as a repetition of a fault. again is set
// if the event was reported before.
func (st *device) add(entry *entry, reason string, e *collector.Event, again bool) {
	for _, f := range st.faults {
		if f.reason != reason {
			continue
		}
		if !again && (!e.Past || e.Time.After(f.last)) { // else a log repeats what was known
			f.n++
		}
		if fatal(e) {
			f.event.Sub = e.Sub
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

// latest returns the latest event of the fault, of the device with the given ID.
func (f *fault) latest(id string) collector.Event {
	e := f.event
	e.Time, e.Device, e.Past, e.Witnesses = f.last, id, f.past, nil
	return e
}

// mildest returns the oldest of the faults with the lowest severity.
func (st *device) mildest() int {
	at := 0
	for i, f := range st.faults {
		if f.severity() < st.faults[at].severity() {
			at = i
		}
	}
	return at
}

// name returns what a person calls the fault: Xid 79.
func (f *fault) name() string {
	var s string
	switch f.event.Kind {
	case collector.EventXid:
		s = fmt.Sprintf("Xid %d", f.event.Code)
	case collector.EventSXid:
		s = fmt.Sprintf("SXid %d", f.event.Code)
	default:
		s = words(string(f.event.Kind))
	}
	if f.entry.Sub != "" {
		s += " " + f.entry.Sub
	}
	return s
}

// faultText describes the fault without its count.
func faultText(f *fault) string {
	s := f.name() + ": " + f.entry.Text
	if f.entry.reason == "" && f.event.Detail != "" {
		s += ": " + f.event.Detail
	}
	return s
}

// fatal reports whether the driver calls the event, an SXid, fatal.
func fatal(e *collector.Event) bool {
	return e.Kind == collector.EventSXid && e.Sub == collector.SubFatal
}

// severity is that of the entry, or Failed if the driver calls the event fatal:
// the tables of SXids do not have every number, and do not know the port.
func (f *fault) severity() Severity {
	if fatal(&f.event) {
		return Failed
	}
	return f.entry.Severity
}

// finding returns the fault as a reason, given the current state of the device.
func (f *fault) finding(l *look, st *device, now time.Time) finding {
	// The driver recommends no action, or one for when running work has ended: the
	// device works, so the action of the catalogue can wait. A reading counts some
	// time after the event, an event that recommends an action at once.
	lets := l.answers && l.driver.waits() && !l.sampled.Before(f.last.Add(settle)) ||
		st.driver != NoAction && st.driver.waits() && !st.driverAt.Before(f.last)
	overruled := f.severity() == Failed && lets && (f.past || f.entry.Rules == "driver")
	waits := f.entry.Grace > 0 && now.Sub(f.first) < f.entry.Grace
	out := newFinding(f.reason, f.message(overruled), f.severity(), f.entry.Action, rankEvent, f.first)
	out.Brief, out.fault = f.name(), f
	if overruled || waits && out.severity == Failed {
		out.severity, out.Severity = Degraded, stateOf(Degraded)
	}
	return out
}

// load processes a load of the driver at t after which the device has answered, or which
// was a load for this device. NVIDIA's driver logs a load after it has probed all
// devices, so a device that it could not start is not cured by the line.
func (st *device) load(t time.Time) {
	if t.After(st.loaded) {
		st.loaded = t
		st.cure(t, true)
	}
}

// cure removes the faults that a reset, or a load of the driver, at t ends.
func (st *device) cure(t time.Time, load bool) {
	st.ended = later(st.ended, t)
	st.faults = slices.DeleteFunc(st.faults, func(f *fault) bool {
		return (f.entry.Ends.Reset || load && f.entry.Ends.Load) && !f.last.After(t)
	})
	if !st.driverAt.After(t) {
		st.driver, st.driverAt = unsetAction, time.Time{}
	}
}

// expire removes faults that have ended.
func (st *device) expire(l *look, now time.Time) {
	st.faults = slices.DeleteFunc(st.faults, func(f *fault) bool {
		settled := l.answers && !l.sampled.Before(f.last.Add(settle))
		switch e := f.entry.Ends; {
		case e.Answer && settled, e.After > 0 && now.Sub(f.last) >= e.After:
			return true
		case f.entry.Sub == noSubCode && settled && l.driver == NoAction && now.Sub(f.last) >= assumedFor:
			return true
		}
		if !settled {
			return false
		}
		if f.entry.SameAs != "" && l.hits[f.entry.sameAs].total > 0 {
			return true
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
