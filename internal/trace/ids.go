package trace

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"

	"go.opentelemetry.io/otel/propagation"
	oteltrace "go.opentelemetry.io/otel/trace"
)

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
// context, see withSpan. The SDK has no other way to set IDs.
type presetIDs struct{}

type spanKey struct{}

func withSpan(ctx context.Context, s *Span) context.Context {
	return context.WithValue(ctx, spanKey{}, s)
}

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
