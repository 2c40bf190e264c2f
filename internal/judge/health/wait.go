package health

import (
	"slices"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
)

// The sub-codes of an Xid stand in the kernel log only. NVML tells of the same
// Xid by its number, often a moment earlier, and what the number alone says may
// be much milder. So it is judged when the log has told of it, or after the
// patience. Both come from one place in the driver, a line after the other.
const (
	kernelLog = "kernellog" // the Source
	patience  = time.Second
)

// awaited is an Xid that is not judged yet.
type awaited struct {
	event collector.Event
	until time.Time
}

// readsLog reports whether the kernel log is read.
func readsLog(s *collector.Snapshot) bool {
	return slices.ContainsFunc(s.Sources, func(src collector.Status) bool { return src.Source == kernelLog && src.Up })
}

// hasSubs reports whether the catalogue tells faults of the event's code apart.
func (c *Catalogue) hasSubs(e *collector.Event) bool {
	return e.Kind == collector.EventXid && c.subs[e.Code]
}

// await keeps an Xid whose sub-code the kernel log is to tell. It reports false
// where nothing is to be waited for.
func (st *device) await(c *Catalogue, e *collector.Event, now time.Time) bool {
	if e.Source == kernelLog || e.Sub != "" || len(e.Witnesses) > 0 || !c.hasSubs(e) || len(st.awaited) >= maxFaults {
		return false
	}
	st.awaited = append(st.awaited, awaited{*e, now.Add(patience)})
	return true
}

// meet ends the wait for what the kernel log tells of now, and returns the event
// as one that nobody has judged yet.
func (st *device) meet(e *collector.Event) *collector.Event {
	i := slices.IndexFunc(st.awaited, func(a awaited) bool { return a.event.Code == e.Code })
	if e.Source != kernelLog || e.Kind != collector.EventXid || i < 0 {
		return e
	}
	st.awaited = slices.Delete(st.awaited, i, i+1)
	first := *e
	first.Witnesses = nil
	return &first
}

// losePatience judges what the log did not tell of, which is all where nobody
// reads it.
func (st *device) losePatience(c *Catalogue, s *collector.Snapshot, loaded time.Time) {
	reads := len(st.awaited) > 0 && readsLog(s)
	waiting := st.awaited
	st.awaited = nil
	for _, a := range waiting {
		if reads && a.until.After(s.Time) {
			st.awaited = append(st.awaited, a)
			s.Again = soonest(s.Again, a.until)
			continue
		}
		st.hear(c, &a.event, loaded)
	}
}

// soonest returns the earlier of two times, b where a is not set.
func soonest(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}
