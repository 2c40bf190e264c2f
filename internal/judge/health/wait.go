package health

import (
	"slices"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
)

// Only the kernel log has the sub-code of an Xid. NVML reports the same Xid by
// its number, often a moment earlier, and the number alone may be much milder.
// So an Xid of NVML is judged when the log has reported it, or after maxWait.
// The driver writes both in the same function.
const (
	kernelLog = "kernellog" // the Source
	maxWait   = time.Second
)

// noSubCode is the Sub of the entry for an Xid that the kernel log does not report:
// its sub-code can be any, so it is judged as the gravest.
const noSubCode = "no_sub_code"

// seenByDriverOnly reports whether e is an Xid that the kernel log has not
// reported.
func seenByDriverOnly(e *collector.Event) bool {
	return e.Kind == collector.EventXid && e.Sub == "" && e.Source != kernelLog && !slices.Contains(e.Witnesses, kernelLog)
}

// awaited is an Xid that is not judged yet.
type awaited struct {
	event collector.Event
	until time.Time
}

// readsLog reports whether the kernel log is read.
func readsLog(s *collector.Snapshot) bool {
	return slices.ContainsFunc(s.Sources, func(src collector.Status) bool { return src.Source == kernelLog && src.Up })
}

// hasSubs reports whether the catalogue has sub-codes for the code of the event.
func (c *Catalogue) hasSubs(e *collector.Event) bool {
	return e.Kind == collector.EventXid && c.subs[e.Code]
}

// await keeps an Xid until the kernel log reports its sub-code. It returns false
// if there is nothing to wait for.
func (st *device) await(c *Catalogue, e *collector.Event, now time.Time) bool {
	if e.Source == kernelLog || e.Sub != "" || len(e.Witnesses) > 0 || !c.hasSubs(e) || len(st.awaited) >= maxFaults {
		return false
	}
	st.awaited = append(st.awaited, awaited{*e, now.Add(maxWait)})
	return true
}

// match ends the wait for an event that the kernel log reports now, and returns
// the event as an event that has not been judged.
func (st *device) match(e *collector.Event) *collector.Event {
	i := slices.IndexFunc(st.awaited, func(a awaited) bool { return a.event.Code == e.Code })
	if e.Source != kernelLog || e.Kind != collector.EventXid || i < 0 {
		return e
	}
	st.awaited = slices.Delete(st.awaited, i, i+1)
	first := *e
	first.Witnesses = nil
	return &first
}

// endWait judges events that the log has not reported in time, or all of them if
// the log is not read.
func (st *device) endWait(c *Catalogue, s *collector.Snapshot) {
	reads := len(st.awaited) > 0 && readsLog(s)
	waiting := st.awaited
	st.awaited = nil
	for _, a := range waiting {
		if reads && a.until.After(s.Time) {
			st.awaited = append(st.awaited, a)
			s.Again = soonest(s.Again, a.until)
			continue
		}
		st.apply(c, &a.event)
	}
}

// soonest returns the earlier of two times, b if a is zero.
func soonest(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}
