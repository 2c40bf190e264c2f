package traceapp

import (
	"context"
	"encoding/json"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/accel-exporter/accel-exporter/internal/traceproc"
)

// scope names what made the spans.
const scope = "github.com/accel-exporter/accel-exporter/internal/trace/lifecycle"

// texts are attributes; what is not known is not added.
type texts []attribute.KeyValue

func (t *texts) add(key attribute.Key, value string) {
	if value != "" {
		*t = append(*t, key.String(value))
	}
}

// spans makes the SDK's spans, without those that its sampler leaves out. Each
// pod has a resource of its own, and so a provider.
func (s *sender) spans(list []traceproc.Span) []sdktrace.ReadOnlySpan {
	var made ended
	tracers := map[traceproc.Pod]trace.Tracer{}
	for i := range list {
		span := &list[i]
		tracer := tracers[span.Pod]
		if tracer == nil {
			// The sampler is that of OTEL_TRACES_SAMPLER: by default the parent's.
			tracer = sdktrace.NewTracerProvider(sdktrace.WithIDGenerator(given{}), sdktrace.WithResource(s.resource(span.Pod)),
				sdktrace.WithSpanProcessor(&made)).Tracer(scope)
			tracers[span.Pod] = tracer
		}
		record(tracer, span)
	}
	return made.spans
}

// resource is what the spans of a pod are about.
func (s *sender) resource(p traceproc.Pod) *resource.Resource {
	var of texts
	of.add(semconv.K8SNamespaceNameKey, p.Namespace)
	of.add(semconv.K8SPodNameKey, p.Name)
	of.add(semconv.K8SPodUIDKey, p.UID)
	merged, err := resource.Merge(s.base, resource.NewSchemaless(of...))
	if err != nil {
		return s.base // two schemas that contradict each other, and one of them is none
	}
	return merged
}

// record makes one span.
func record(tracer trace.Tracer, s *traceproc.Span) {
	ids, parent, ok := identify(s)
	if !ok {
		return
	}
	ctx := context.WithValue(context.Background(), idsKey{}, ids)
	if parent.IsValid() {
		ctx = trace.ContextWithRemoteSpanContext(ctx, parent)
	}
	_, span := tracer.Start(ctx, s.Name, trace.WithTimestamp(s.Start), trace.WithAttributes(attributes(s.Attrs)...))
	for _, e := range s.Events {
		span.AddEvent(e.Name, trace.WithTimestamp(e.Time), trace.WithAttributes(attributes(e.Attrs)...))
	}
	if s.Error != "" {
		span.SetStatus(codes.Error, s.Error)
	}
	span.End(trace.WithTimestamp(s.End))
}

// ids are what a span is to have.
type ids struct {
	trace trace.TraceID
	span  trace.SpanID
}

type idsKey struct{}

// identify returns the IDs of a span and the one it is a child of. The trace of
// the pod's annotation takes the place of ours, and a span without a parent is
// a child of the span that the annotation names.
func identify(s *traceproc.Span) (of ids, parent trace.SpanContext, ok bool) {
	var err, bad error
	of.trace, err = trace.TraceIDFromHex(s.Trace)
	of.span, bad = trace.SpanIDFromHex(s.ID)
	if err != nil || bad != nil {
		return of, parent, false
	}
	outer := outerOf(s.Context)
	if outer.IsValid() {
		of.trace = outer.TraceID()
	}
	if s.Parent == "" {
		return of, outer, true
	}
	id, err := trace.SpanIDFromHex(s.Parent)
	if err != nil {
		return of, parent, false
	}
	flags := trace.FlagsSampled
	if outer.IsValid() {
		flags = outer.TraceFlags()
	}
	return of, trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: of.trace, SpanID: id, TraceFlags: flags, TraceState: outer.TraceState(), Remote: true,
	}), true
}

// outerOf reads the trace context of an annotation: a traceparent as W3C has
// it, or, as Tekton writes it, a JSON object with one. It is invalid where the
// text is neither.
func outerOf(text string) trace.SpanContext {
	carrier := propagation.MapCarrier{"traceparent": text}
	if strings.HasPrefix(text, "{") {
		carrier = propagation.MapCarrier{}
		if json.Unmarshal([]byte(text), &carrier) != nil {
			return trace.SpanContext{}
		}
	}
	return trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), carrier))
}

// given yields the IDs that were put into the context.
type given struct{}

// NewIDs implements sdktrace.IDGenerator.
func (given) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	of, _ := ctx.Value(idsKey{}).(ids)
	return of.trace, of.span
}

// NewSpanID implements sdktrace.IDGenerator.
func (given) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	of, _ := ctx.Value(idsKey{}).(ids)
	return of.span
}

// ended collects spans that have ended. It implements sdktrace.SpanProcessor.
type ended struct{ spans []sdktrace.ReadOnlySpan }

func (*ended) OnStart(context.Context, sdktrace.ReadWriteSpan) {}
func (e *ended) OnEnd(s sdktrace.ReadOnlySpan)                 { e.spans = append(e.spans, s) }
func (*ended) Shutdown(context.Context) error                  { return nil }
func (*ended) ForceFlush(context.Context) error                { return nil }

func attributes(list []traceproc.Attr) []attribute.KeyValue {
	out := make([]attribute.KeyValue, 0, len(list))
	for _, a := range list {
		key := attribute.Key(a.Key)
		switch a.Type {
		case traceproc.TextAttr:
			out = append(out, key.String(a.Text))
		case traceproc.ListAttr:
			out = append(out, key.StringSlice(a.List))
		case traceproc.IntAttr:
			out = append(out, key.Int64(a.Int))
		case traceproc.BoolAttr:
			out = append(out, key.Bool(a.Yes))
		}
	}
	return out
}
