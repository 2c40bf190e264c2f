package trace

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
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

// joinKey joins the parts that identify something.
func joinKey(parts ...any) string {
	var key []byte
	for _, p := range parts {
		key = append(fmt.Append(key, p), 0)
	}
	return string(key)
}

// digest returns bytes for an ID. They depend only on the parts and are never all 0,
// which is not a valid ID.
func digest(parts ...any) [sha256.Size]byte {
	sum := sha256.Sum256([]byte("accel-exporter\x00" + joinKey(parts...)))
	sum[0] |= 1
	return sum
}

func traceID(parts ...any) (id oteltrace.TraceID) {
	sum := digest(parts...)
	copy(id[:], sum[:])
	return
}

func spanID(parts ...any) (id oteltrace.SpanID) { sum := digest(parts...); copy(id[:], sum[:]); return }

// parseContext reads the trace context of an annotation: a W3C traceparent, or
// a JSON object with one, as Tekton writes it. It is invalid for any other
// text.
func parseContext(text string) oteltrace.SpanContext {
	carrier := propagation.MapCarrier{"traceparent": text}
	if strings.HasPrefix(text, "{") {
		carrier = propagation.MapCarrier{}
		if json.Unmarshal([]byte(text), &carrier) != nil {
			return oteltrace.SpanContext{}
		}
	}
	return oteltrace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), carrier))
}

// presetIDs is the sdktrace.IDGenerator that takes the IDs of the Span in the
// context, see record. The SDK has no other way to set IDs.
type presetIDs struct{}

type spanKey struct{}

// NewIDs implements sdktrace.IDGenerator.
func (presetIDs) NewIDs(ctx context.Context) (oteltrace.TraceID, oteltrace.SpanID) {
	s, _ := ctx.Value(spanKey{}).(*Span)
	return s.Trace, s.ID
}

// NewSpanID implements sdktrace.IDGenerator.
func (presetIDs) NewSpanID(ctx context.Context, _ oteltrace.TraceID) oteltrace.SpanID {
	s, _ := ctx.Value(spanKey{}).(*Span)
	return s.ID
}
