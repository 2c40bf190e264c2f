package trace

import (
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/accel-exporter/accel-exporter/internal/judge/allocation"
	"github.com/accel-exporter/accel-exporter/internal/trace/lifecycle"
)

// The names of all spans.
const (
	spanAllocation = "accel.allocation" // a pod, from its first to its last device
	spanHold       = "accel.hold"       // one device of the pod
	spanHeld       = "accel.held"       // no duration: the start of one device
	spanWait       = "accel.wait"       // from that start to the first activity
	spanIdle       = "accel.idle"       // a period without activity
	spanFault      = "accel.fault"      // no duration: a fault of the device
)

// Span is a span that has ended.
type Span struct {
	// Trace and ID are the same if the span is sent again.
	Trace oteltrace.TraceID
	ID    oteltrace.SpanID
	// Parent is invalid for the root of a trace.
	Parent oteltrace.SpanContext
	Name   string
	// End is never before Start.
	Start, End time.Time
	Pod        Pod
	Attrs      []attribute.KeyValue
	Events     []sdktrace.Event
	// Error is the description of the status Error. The status is unset if Error is
	// empty.
	Error string
}

// Pod is the resource of a span. UID is empty if it is unknown.
type Pod struct {
	Namespace, Name, UID string
}

// attrs is a list of attributes. It omits empty texts and lists.
type attrs []attribute.KeyValue

func (a *attrs) add(kv attribute.KeyValue) { *a = append(*a, kv) }

func (a *attrs) text(key, value string) {
	if value != "" {
		a.add(attribute.String(key, value))
	}
}

func (a *attrs) list(key string, values []string) {
	if len(values) > 0 {
		a.add(attribute.StringSlice(key, values))
	}
}

// deviceAttrs describe the device of an allocation, by the semantic
// conventions for hardware where they have an attribute.
func deviceAttrs(l *allocation.Record) attrs {
	var a attrs
	a.text("hw.id", l.Device)
	a.text("hw.type", string(l.Class))
	if l.Index != "" {
		a.text("hw.name", string(l.Class)+l.Index)
	}
	a.text("hw.vendor", l.Vendor)
	a.text("hw.model", l.Model)
	a.text("hw.parent", l.Parent)
	a.text("accel.device.profile", l.Profile)
	a.text("accel.device.pci_address", l.PCI)
	if len(l.Containers) == 1 {
		a.text("k8s.container.name", l.Containers[0])
	}
	return a
}

// faultAttrs describe a fault and the verdict on its device.
func faultAttrs(f *lifecycle.Fault, l *allocation.Record) attrs {
	var a attrs
	a.text("accel.fault.name", f.Name)
	if f.Code > 0 {
		a.add(attribute.Int64("accel.xid.code", int64(f.Code)))
	}
	if f.Cause > 0 {
		a.add(attribute.Int64("accel.xid.cause", int64(f.Cause)))
	}
	a.text("accel.xid.sub", f.Sub)
	a.text("accel.fault.detail", f.Detail)
	a.text("accel.recovery_action", f.Action)
	a.text("accel.health.state", l.Health)
	a.text("accel.health.action", l.Action)
	return a
}
