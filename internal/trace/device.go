package trace

import (
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/judge/allocation"
	"github.com/accel-exporter/accel-exporter/internal/trace/lifecycle"
)

const (
	// killedWithin is the longest time from a fault to a release that gives the
	// release the status Error.
	killedWithin = 2 * time.Minute
	// maxEvents bounds the events of one device.
	maxEvents = 32
)

// device is the span accel.hold in progress: one device of a podTrace.
type device struct {
	key       string // of its span
	since     time.Time
	observed  bool // the start was observed
	idleSince time.Time
	events    []sdktrace.Event
	omitted   int    // faults beyond maxEvents
	lastFault string // the latest
	faultAt   time.Time
}

// started returns the span that marks the start.
func (d *device) started(c *lifecycle.Change) draft {
	s := d.child(c.State, spanHeld, c.Time, c.Time, c.Time.UnixNano())
	s.Attrs = append(s.Attrs, attribute.Bool("accel.allocation.start_observed", c.Observed))
	return s
}

// activity returns the span until the first activity, if its start and end were
// observed.
func (d *device) activity(c *lifecycle.Change) []draft {
	d.events = append(d.events, sdktrace.Event{
		Name: "accel.first_activity", Time: c.Time, Attributes: []attribute.KeyValue{attribute.Bool("accel.observed", c.Observed)},
	})
	if !c.Observed || !d.observed {
		return nil
	}
	return []draft{d.wait(c.State, c.Time, true)}
}

func (d *device) wait(l *allocation.Record, end time.Time, activity bool) draft {
	s := d.child(l, spanWait, d.since, end)
	s.Attrs = append(s.Attrs, attribute.Bool("accel.wait.activity", activity))
	return s
}

func (d *device) idle(c *lifecycle.Change) draft {
	s := d.child(c.State, spanIdle, d.idleSince, c.Time, d.idleSince.UnixNano())
	s.Attrs = append(s.Attrs, attribute.Bool("accel.observed", c.Observed))
	return s
}

// fault returns the span of a fault and keeps the fault as an event of the
// device.
func (d *device) fault(c *lifecycle.Change) []draft {
	if !c.Time.Before(d.faultAt) {
		d.lastFault, d.faultAt = c.Fault.Name, c.Time
	}
	if len(d.events) >= maxEvents {
		d.omitted++
		return nil
	}
	a := faultAttrs(c.Fault, c.State)
	d.events = append(d.events, sdktrace.Event{Name: spanFault, Time: c.Time, Attributes: a})
	s := d.child(c.State, spanFault, c.Time, c.Time, c.Fault.Name, c.Time.UnixNano(), len(d.events))
	s.Attrs, s.Error = append(s.Attrs, a...), c.Fault.Name
	return []draft{s}
}

// release returns the last spans of the device. The last one is accel.hold.
func (d *device) release(c *lifecycle.Change) (out []draft) {
	l := c.State
	if d.observed && l.Last.IsZero() && l.IdleKnown && !l.IdleSince.IsZero() {
		out = append(out, d.wait(l, c.Time, false))
	}
	a := deviceAttrs(l)
	a.list("accel.allocation.resources", l.Resources)
	if len(l.Containers) > 1 {
		a.list("accel.allocation.containers", l.Containers)
	}
	a.add(attribute.Bool("accel.allocation.shared", l.Shared))
	a.add(attribute.Bool("accel.allocation.start_observed", d.observed))
	a.add(attribute.Bool("accel.allocation.end_observed", c.Observed))
	a.text("accel.health.state", l.Health)
	a.text("accel.health.action", l.Action)
	if d.omitted > 0 {
		a.add(attribute.Int("accel.faults_omitted", d.omitted))
	}
	s := draft{newSpan(spanHold, d.since, c.Time), d.key, joinKey(spanAllocation)}
	s.Attrs, s.Events, s.Error = a, d.events, d.failure(l, c.Time)
	return append(out, s)
}

// failure returns the description of the status Error, or "" without an error. It
// describes the order of events only, because it is unknown whether the fault ended the
// pod.
func (d *device) failure(l *allocation.Record, end time.Time) string {
	if d.lastFault != "" && end.Sub(d.faultAt) <= killedWithin {
		return fmt.Sprintf("released %s after %s", max(end.Sub(d.faultAt), 0).Round(time.Second), d.lastFault)
	}
	if l.Health == "failed" {
		return "the device had failed when it was released"
	}
	return ""
}

// child returns a child span of the device's span. The parts of nonce distinguish spans
// of the same name.
func (d *device) child(l *allocation.Record, name string, start, end time.Time, nonce ...any) draft {
	s := draft{newSpan(name, start, end), joinKey(append([]any{name, d.key}, nonce...)...), d.key}
	s.Attrs = deviceAttrs(l)
	return s
}

// newSpan returns a span. If the clock was set during it, its start is by the new clock.
func newSpan(name string, start, end time.Time) Span {
	start = collector.OnClock(start, end)
	if end.Before(start) {
		end = start
	}
	return Span{Name: name, Start: start, End: end}
}
