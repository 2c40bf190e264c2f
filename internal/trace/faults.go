package trace

import (
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/judge/allocation"
)

const (
	// detailDelay is how long an Xid without a text waits for the report of the
	// kernel log, which comes a moment after NVML's.
	detailDelay = 2 * time.Second
	// killedWithin is the longest time from a fault to a release that gives the
	// release the status Error.
	killedWithin = 2 * time.Minute
	// maxFaults limits the spans of faults of one allocation.
	maxFaults = 32
)

// faults are the faults of one allocation.
type faults struct {
	latest  map[string]time.Time // by name
	last    string               // name of the latest
	at      time.Time            // time of the latest
	sent    int
	omitted int // faults beyond maxFaults
}

// findFaults returns the spans of the new faults of an allocation. An Xid that may
// still get a text waits, unless the allocation has ended.
func (t *Tracker) findFaults(a *tracked, l *allocation.Record, events []collector.Event, now time.Time) {
	for _, f := range l.Faults {
		if !f.Time.After(a.faults.latest[f.Name]) || !during(l, f.Time) {
			continue
		}
		e := eventOf(f, l, events)
		if e.Kind == collector.EventXid && e.Detail == "" && l.Until.IsZero() && now.Sub(f.Time) < detailDelay {
			continue
		}
		a.faults.latest[f.Name] = f.Time
		t.addFault(a, l, f.Name, e)
	}
}

// eventOf returns the event of a fault, or an event with its time alone if there is
// none.
func eventOf(f allocation.Fault, l *allocation.Record, events []collector.Event) *collector.Event {
	for i := range events {
		if e := &events[i]; e.Time.Equal(f.Time) && allocation.FaultName(e) == f.Name && l.Affects(e) {
			return e
		}
	}
	return &collector.Event{Time: f.Time}
}

// during reports whether an allocation existed at a time, or may have existed.
// An allocation also has the faults of an earlier pod of the same name; these precede
// it.
func during(l *allocation.Record, at time.Time) bool {
	return !at.Before(l.Since) || !l.After.IsZero() && at.After(l.After)
}

// addFault returns the span of a fault with its event.
func (t *Tracker) addFault(a *tracked, l *allocation.Record, name string, e *collector.Event) {
	f := &a.faults
	if !e.Time.Before(f.at) {
		f.last, f.at = name, e.Time
	}
	if f.sent >= maxFaults {
		f.omitted++
		return
	}
	f.sent++
	attrs := deviceAttrs(l)
	attrs.text("accel.fault.name", name)
	if e.Kind == collector.EventXid {
		attrs.add(attribute.Int64("accel.xid.code", int64(e.Code)))
	}
	if e.Cause > 0 {
		attrs.add(attribute.Int64("accel.xid.cause", int64(e.Cause)))
	}
	attrs.text("accel.xid.sub", e.Sub)
	attrs.text("accel.fault.detail", e.Detail)
	attrs.text("accel.recovery_action", e.Action)
	attrs.text("accel.health.state", l.Health)
	attrs.text("accel.health.action", l.Action)
	span := newSpan(spanFault, e.Time, e.Time, attrs)
	span.Error = name
	t.emit(a.pod, span, l.Device, name, e.Time.UnixNano(), f.sent)
}

// failure returns the description of the status Error of a released allocation,
// or "" without an error. It describes the order of events only, because it is
// unknown whether the fault ended the pod.
func (a *tracked) failure(end time.Time) string {
	if f := &a.faults; f.last != "" && end.Sub(f.at) <= killedWithin {
		return fmt.Sprintf("released %s after %s", max(end.Sub(f.at), 0).Round(time.Second), f.last)
	}
	if a.record.Health == "failed" {
		return "the device had failed when it was released"
	}
	return ""
}
