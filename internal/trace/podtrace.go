package trace

import (
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/accel-exporter/accel-exporter/internal/trace/lifecycle"
	"github.com/accel-exporter/accel-exporter/podmap"
)

// maxListed bounds the devices in an attribute.
const maxListed = 32

// podTrace is a trace in progress: the allocations of one pod.
type podTrace struct {
	pod        podmap.Pod
	found      time.Time // when the Builder began it
	since, end time.Time
	observed   bool // the start was observed
	devices    map[uint64]*device
	ids        []string
	failure    string // of the first device with a failure
	identity   Identity
	outer      oteltrace.SpanContext // of the annotation, else invalid
	base       string                // identifies the pod
	seed       string                // identifies the trace, "" until settled
	waiting    []draft               // spans until then
	times      map[string]int        // number of allocations, by device
}

// draft is a span and the keys of its IDs.
type draft struct {
	Span
	key, parent string
}

// newPodTrace returns the trace that begins with a change.
func newPodTrace(now time.Time, c *lifecycle.Change) *podTrace {
	return &podTrace{pod: c.State.Pod, found: now, since: c.Time, observed: c.Observed, devices: map[uint64]*device{}, times: map[string]int{}}
}

// start adds a device to the trace.
func (t *podTrace) start(c *lifecycle.Change) draft {
	if c.Time.Before(t.since) {
		t.since, t.observed = c.Time, c.Observed
	}
	id := c.State.Device
	if t.times[id] == 0 {
		t.ids = append(t.ids, id)
	}
	t.times[id]++
	d := &device{key: joinKey(spanHold, id, t.times[id]), since: c.Time, observed: c.Observed}
	t.devices[c.Allocation] = d
	return d.started(c)
}

// release ends a device of the trace.
func (t *podTrace) release(d *device, c *lifecycle.Change) []draft {
	out := d.release(c)
	if failure := out[len(out)-1].Error; failure != "" && t.failure == "" {
		t.failure = c.State.Device + ": " + failure
	}
	if c.Time.After(t.end) {
		t.end = c.Time
	}
	return out
}

// root returns the span of the whole trace.
func (t *podTrace) root() draft {
	d := draft{Span: newSpan(spanAllocation, t.since, t.end), key: joinKey(spanAllocation)}
	var a attrs
	slices.Sort(t.ids)
	a.list("accel.allocation.devices", t.ids[:min(len(t.ids), maxListed)])
	a.add(attribute.Int("accel.allocation.device_count", len(t.ids)))
	a.add(attribute.Bool("accel.allocation.start_observed", t.observed))
	d.Attrs, d.Error = a, t.failure
	return d
}
