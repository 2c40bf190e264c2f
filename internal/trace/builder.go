package trace

import (
	"time"

	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/accel-exporter/accel-exporter/internal/trace/lifecycle"
	"github.com/accel-exporter/accel-exporter/podmap"
)

const (
	// identifyWithin bounds how long the spans of a pod wait for its UID and
	// trace context. The API server and the kubelet's directories show a pod a
	// little later than the kubelet's list.
	identifyWithin = 10 * time.Second
	// maxPast bounds the ended traces that are counted by pod. The count makes the
	// next allocation of the same pod another trace.
	maxPast = 1024
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

// Builder makes spans of changes. It is not safe for concurrent use.
type Builder struct {
	node     string
	identify Identifier
	pods     map[podmap.Pod]*podTrace
	past     map[string]int // number of ended traces, by podTrace.base
	order    []string       // keys of past, the oldest first
	out      []Span
}

// NewBuilder returns a Builder. The name of the node identifies pods without a known
// UID.
func NewBuilder(node string, identify Identifier) *Builder {
	return &Builder{node: node, identify: identify, pods: map[podmap.Pod]*podTrace{}, past: map[string]int{}}
}

// Open returns the number of traces that have not ended.
func (b *Builder) Open() int { return len(b.pods) }

// Write processes changes and returns the spans that have ended. now is the time of the
// state with the changes.
func (b *Builder) Write(now time.Time, changes []lifecycle.Change) []Span {
	b.out = nil
	for i := range changes {
		b.apply(now, &changes[i])
	}
	for _, t := range b.pods {
		b.settle(t, now, false)
	}
	return b.out
}

// Flush returns the spans that wait for the identity of their pod.
func (b *Builder) Flush(now time.Time) []Span {
	b.out = nil
	for _, t := range b.pods {
		b.settle(t, now, true)
	}
	return b.out
}

func (b *Builder) apply(now time.Time, c *lifecycle.Change) {
	t := b.pods[c.State.Pod]
	if c.Kind == lifecycle.Allocated {
		if t == nil {
			t = newPodTrace(now, c)
			b.pods[t.pod] = t
		}
		b.emit(t, t.start(c))
		return
	}
	if t == nil || t.devices[c.Allocation] == nil {
		return
	}
	d := t.devices[c.Allocation]
	switch c.Kind {
	case lifecycle.Activity:
		b.emit(t, d.activity(c)...)
	case lifecycle.IdleBegan:
		d.idleSince = c.Time
	case lifecycle.IdleEnded:
		b.emit(t, d.idle(c))
	case lifecycle.FaultFound:
		b.emit(t, d.fault(c)...)
	case lifecycle.Released:
		b.emit(t, t.release(d, c)...)
		if delete(t.devices, c.Allocation); len(t.devices) == 0 {
			b.close(t, now)
		}
	}
}

// close ends a trace with the span of its root.
func (b *Builder) close(t *podTrace, now time.Time) {
	b.settle(t, now, true)
	b.emit(t, t.root())
	b.remember(t.base)
	delete(b.pods, t.pod)
}

// remember counts a trace that has ended.
func (b *Builder) remember(base string) {
	if b.past[base]++; b.past[base] > 1 {
		return
	}
	b.order = append(b.order, base)
	if len(b.order) > maxPast {
		delete(b.past, b.order[0])
		b.order = b.order[1:]
	}
}

// emit returns spans to the caller of Write, or keeps them until the identity
// of their pod is settled.
func (b *Builder) emit(t *podTrace, drafts ...draft) {
	if t.seed == "" {
		t.waiting = append(t.waiting, drafts...)
		return
	}
	for _, d := range drafts {
		d.Trace, d.ID, d.Parent = traceID(t.seed), spanID(t.seed, d.key), t.outer
		flags := oteltrace.FlagsSampled
		if t.outer.IsValid() {
			d.Trace, flags = t.outer.TraceID(), t.outer.TraceFlags()
		}
		if d.parent != "" {
			d.Parent = oteltrace.NewSpanContext(oteltrace.SpanContextConfig{
				TraceID: d.Trace, SpanID: spanID(t.seed, d.parent), TraceFlags: flags, TraceState: t.outer.TraceState(), Remote: true,
			})
		}
		d.Pod = Pod{Namespace: t.pod.Namespace, Name: t.pod.Name, UID: t.identity.UID}
		b.out = append(b.out, d.Span)
	}
}

// settle sets the identity of a trace: the UID of the pod, which is the same after a
// restart of the exporter, or the name and the time if the UID stays unknown.
func (b *Builder) settle(t *podTrace, now time.Time, atOnce bool) {
	if t.seed != "" {
		return
	}
	t.identity = b.identify(t.pod, t.found)
	if !t.identity.Final && !atOnce && now.Sub(t.found) < identifyWithin {
		return
	}
	t.outer = parseContext(t.identity.Context)
	t.base = joinKey("uid", t.identity.UID)
	if t.identity.UID == "" {
		t.base = joinKey("name", b.node, t.pod.Namespace, t.pod.Name, t.since.UnixNano())
	}
	t.seed = joinKey(t.base, b.past[t.base])
	waiting := t.waiting
	t.waiting = nil
	b.emit(t, waiting...)
}
