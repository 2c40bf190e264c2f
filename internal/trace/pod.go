package trace

import (
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/accel-exporter/accel-exporter/internal/judge/allocation"
	"github.com/accel-exporter/accel-exporter/podmap"
)

const (
	// identifyWithin bounds how long the spans of a pod wait for its UID and
	// trace context. The API server and the kubelet's directories show a pod a
	// little later than the kubelet's list.
	identifyWithin = 10 * time.Second
	// maxListed bounds the devices in an attribute.
	maxListed = 32
)

// Identity is the data that identifies a pod besides its name.
type Identity struct {
	UID string
	// Context is the trace context in the pod's annotation.
	Context string
	// Final means that UID and Context will not change.
	Final bool
}

// Identifier returns the Identity of a pod that has devices since a time before found.
// Data from before found may be about an earlier pod of the same name. It must not
// block.
type Identifier func(p podmap.Pod, found time.Time) Identity

// podTrace is a trace in progress: the allocations of one pod.
type podTrace struct {
	pod      podmap.Pod
	found    time.Time // when the Tracker found it
	since    time.Time // start of the first allocation
	observed bool      // that start was observed
	devices  []string
	seed     string                // identifies the trace, "" until settled
	uid      string                // "" if unknown
	parent   oteltrace.SpanContext // of the root: that of the annotation, else invalid
	root     oteltrace.SpanContext // parent of all other spans
	waiting  []Span                // spans until settled
}

// podOf returns the trace of the pod of an allocation.
func (t *Tracker) podOf(l *allocation.Record, now time.Time) *podTrace {
	p := t.pods[l.Pod]
	if p == nil {
		p = &podTrace{pod: l.Pod, found: now, since: l.Since, observed: !l.After.IsZero()}
		t.pods[l.Pod] = p
	}
	if l.Since.Before(p.since) {
		p.since, p.observed = l.Since, !l.After.IsZero()
	}
	return p
}

// settle sets the identity of a trace: the UID of the pod, which is the same after a
// restart of the exporter, or the name and the time if the UID stays unknown. It
// then returns the root and the spans that waited for the identity.
func (t *Tracker) settle(p *podTrace, now time.Time, atOnce bool) {
	if p.seed != "" {
		return
	}
	id := t.identify(p.pod, p.found)
	if !id.Final && !atOnce && now.Sub(p.found) < identifyWithin {
		return
	}
	p.uid, p.parent = id.UID, parseContext(id.Context)
	p.seed = joinKey("uid", id.UID)
	if id.UID == "" {
		p.seed = joinKey("name", t.node, p.pod.Namespace, p.pod.Name, p.since.UnixNano())
	}
	trace, flags := traceID(p.seed), oteltrace.FlagsSampled
	if p.parent.IsValid() {
		trace, flags = p.parent.TraceID(), p.parent.TraceFlags()
	}
	p.root = oteltrace.NewSpanContext(oteltrace.SpanContextConfig{
		TraceID: trace, SpanID: spanID(p.seed, spanAllocation), TraceFlags: flags, TraceState: p.parent.TraceState(), Remote: true,
	})
	t.out = append(t.out, p.rootSpan())
	for _, s := range p.waiting {
		t.out = append(t.out, p.child(s))
	}
	p.waiting = nil
}

// rootSpan is the span that marks the start of the trace. It has no duration: an
// allocation may last for weeks, and a trace without its root is shown in pieces.
func (p *podTrace) rootSpan() Span {
	var a attrs
	slices.Sort(p.devices)
	p.devices = slices.Compact(p.devices)
	a.list("accel.allocation.devices", p.devices[:min(len(p.devices), maxListed)])
	a.add(attribute.Int("accel.allocation.device_count", len(p.devices)))
	a.add(attribute.Bool("accel.allocation.start_observed", p.observed))
	s := newSpan(spanAllocation, p.since, p.since, a)
	s.ID, s.Trace, s.Parent, s.Pod = p.root.SpanID(), p.root.TraceID(), p.parent, p.resource()
	return s
}

// emit returns a span to the caller of Update, or keeps it until the identity of
// its pod is settled. The parts of key distinguish spans of the same name.
func (t *Tracker) emit(p *podTrace, s Span, key ...any) {
	s.key = joinKey(append([]any{s.Name}, key...)...)
	if p.seed == "" {
		p.waiting = append(p.waiting, s)
		return
	}
	t.out = append(t.out, p.child(s))
}

// child sets the IDs of a span below the root.
func (p *podTrace) child(s Span) Span {
	s.Trace, s.ID, s.Parent, s.Pod = p.root.TraceID(), spanID(p.seed, s.key), p.root, p.resource()
	return s
}

func (p *podTrace) resource() Pod { return Pod{p.pod.Namespace, p.pod.Name, p.uid} }
