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
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/judge/allocation"
)

// The names of all spans. All but the first are children of it.
const (
	spanAllocation = "accel.allocation" // no duration: a pod gets its first device
	spanWait       = "accel.wait"       // from the start of an allocation to the first activity
	spanActive     = "accel.active"     // a period with activity
	spanIdle       = "accel.idle"       // a period without activity
	spanFault      = "accel.fault"      // no duration: a fault of the device
	spanDevice     = "accel.device"     // one device of the pod, from start to release
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
	// Error is the description of the status Error. The status is unset if Error is
	// empty.
	Error string

	key string // of ID, among the spans of its trace
}

// newSpan returns a span. If the clock was set during it, its start is by the new clock.
func newSpan(name string, start, end time.Time, a attrs) Span {
	start = collector.OnClock(start, end)
	if end.Before(start) {
		end = start
	}
	return Span{Name: name, Start: start, End: end, Attrs: a}
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
// conventions for hardware if these have an attribute.
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
