package trace

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	oteltrace "go.opentelemetry.io/otel/trace"
)

const (
	// maxQueued bounds the queued spans.
	maxQueued = 4096
	// maxBatch bounds the spans of one request.
	maxBatch = 256
	// scope is the instrumentation scope of all spans.
	scope = "github.com/accel-exporter/accel-exporter/internal/trace"
	// sendTimeout bounds one request. It is the default of OTLP.
	sendTimeout = 10 * time.Second
	retryMax    = 30 * time.Second
)

// Options configure a Sender.
type Options struct {
	Endpoint Endpoint
	// HeadersFile and CAFile are "" for none.
	HeadersFile, CAFile string
	// Version is the exporter's. Host and Node are the names of the machine and
	// of its Kubernetes node, "" where unknown.
	Version, Host, Node string
	Log                 *slog.Logger

	// Delay bounds the time a span waits for the rest of its batch; 0 means 1 s.
	Delay time.Duration
	// Retry is the first pause after a failed request; 0 means 1 s. Pauses grow up
	// to 30 s.
	Retry time.Duration
	// Drain bounds Close; 0 means 5 s.
	Drain time.Duration
}

// Sender records spans with OpenTelemetry's SDK, which queues and sends them.
type Sender struct {
	o        Options
	base     *resource.Resource // common to all spans
	exporter sdktrace.SpanExporter
	queue    sdktrace.SpanProcessor
	idle     func() // closes idle connections
}

// NewSender returns a Sender and starts the SDK's batch processor. It does not connect,
// so an unreachable receiver is not an error.
func NewSender(o Options) (*Sender, error) {
	o.Delay, o.Retry, o.Drain = cmp.Or(o.Delay, time.Second), cmp.Or(o.Retry, time.Second), cmp.Or(o.Drain, 5*time.Second)
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { o.Log.Warn("OpenTelemetry reports an error", "err", clip(err.Error())) }))
	base, err := baseResource(&o)
	if err != nil {
		return nil, err
	}
	s := &Sender{o: o, base: base}
	if s.exporter, s.idle, err = newExporter(&o); err != nil {
		return nil, err
	}
	// The exporter retries without a time limit, so spans are lost only if the queue
	// is full.
	s.queue = sdktrace.NewBatchSpanProcessor(s.exporter,
		sdktrace.WithMaxQueueSize(maxQueued), sdktrace.WithMaxExportBatchSize(maxBatch),
		sdktrace.WithBatchTimeout(o.Delay), sdktrace.WithExportTimeout(0))
	return s, nil
}

// Send queues spans while the queue is not full. It does not block. It must not be
// called after Close.
func (s *Sender) Send(spans ...Span) {
	tracers := map[Pod]oteltrace.Tracer{}
	for i := range spans {
		span := &spans[i]
		tracer := tracers[span.Pod]
		if tracer == nil {
			// A resource belongs to a provider, and each pod has its own. The
			// sampler is set by OTEL_TRACES_SAMPLER, by default the parent's.
			tracer = sdktrace.NewTracerProvider(sdktrace.WithIDGenerator(presetIDs{}),
				sdktrace.WithResource(podResource(s.base, span.Pod)), sdktrace.WithSpanProcessor(s.queue)).Tracer(scope)
			tracers[span.Pod] = tracer
		}
		record(tracer, span)
	}
}

// record starts and ends a span of the SDK.
func record(tracer oteltrace.Tracer, s *Span) {
	ctx := context.WithValue(context.Background(), spanKey{}, s)
	if s.Parent.IsValid() {
		ctx = oteltrace.ContextWithRemoteSpanContext(ctx, s.Parent)
	}
	_, span := tracer.Start(ctx, s.Name, oteltrace.WithTimestamp(s.Start), oteltrace.WithAttributes(s.Attrs...))
	if s.Error != "" {
		span.SetStatus(codes.Error, s.Error)
	}
	span.End(oteltrace.WithTimestamp(s.End))
}

// Close sends queued spans for up to Options.Drain, logs that the rest is lost, and ends
// the SDK's goroutines.
func (s *Sender) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), s.o.Drain)
	defer cancel()
	defer s.idle()
	if err := s.queue.Shutdown(ctx); err != nil {
		s.o.Log.Warn("Spans are lost: they were not sent before the exporter ended", "err", clip(err.Error()))
		_ = s.exporter.Shutdown(context.Background()) // it ends the request in flight
	}
}

// baseResource describes this exporter. OTEL_RESOURCE_ATTRIBUTES and
// OTEL_SERVICE_NAME take precedence.
func baseResource(o *Options) (*resource.Resource, error) {
	var own attrs
	own.text(string(semconv.ServiceNameKey), "accel-exporter")
	own.text(string(semconv.ServiceVersionKey), o.Version)
	own.text(string(semconv.HostNameKey), o.Host)
	own.text(string(semconv.K8SNodeNameKey), o.Node)
	r, err := resource.New(context.Background(), resource.WithSchemaURL(semconv.SchemaURL),
		resource.WithTelemetrySDK(), resource.WithAttributes(own...), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	return r, nil
}

// podResource adds a pod to the base resource.
func podResource(base *resource.Resource, p Pod) *resource.Resource {
	var of attrs
	of.text(string(semconv.K8SNamespaceNameKey), p.Namespace)
	of.text(string(semconv.K8SPodNameKey), p.Name)
	of.text(string(semconv.K8SPodUIDKey), p.UID)
	merged, err := resource.Merge(base, resource.NewSchemaless(of...))
	if err != nil {
		return base // only schemas that differ fail, and the second resource has none
	}
	return merged
}
