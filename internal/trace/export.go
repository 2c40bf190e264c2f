package trace

import (
	"context"
	"crypto/tls"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
)

const (
	// sendTimeout bounds one request. It is the default of OTLP.
	sendTimeout = 10 * time.Second
	retryMax    = 30 * time.Second
)

// exporter is the SDK's OTLP exporter, with the results of spans counted. The
// batch processor calls ExportSpans for one batch at a time.
type exporter struct {
	sdktrace.SpanExporter
	counts   *counts
	requests *requests

	aborted context.Context // done after abort
	abort   context.CancelFunc
	ended   chan struct{} // closed by Shutdown
}

func newExporter(o *Options, c *counts) (*exporter, error) {
	e := &exporter{counts: c, ended: make(chan struct{}), requests: &requests{
		log: o.Log, counts: c, headers: headers{path: o.HeadersFile}, transport: http.DefaultTransport.(*http.Transport).Clone(),
	}}
	if err := e.requests.headers.read(); err != nil {
		return nil, err
	}
	var config *tls.Config
	if o.Endpoint.TLS {
		config = &tls.Config{MinVersion: tls.VersionTLS12}
		if o.CAFile != "" {
			pool, err := ReadCAs(o.CAFile)
			if err != nil {
				return nil, err
			}
			config.RootCAs = pool
		}
	}
	client := e.requests.overHTTP
	if o.Endpoint.GRPC {
		client = e.requests.overGRPC
	}
	var err error
	e.SpanExporter, err = otlptrace.New(context.Background(), client(o, config))
	e.aborted, e.abort = context.WithCancel(context.Background())
	return e, err
}

// ExportSpans implements sdktrace.SpanExporter. It returns when the receiver has
// accepted or rejected the spans, or after abort. It returns no error, because counts
// records it.
func (e *exporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(e.aborted, cancel)()
	e.requests.rejected = 0
	err := e.SpanExporter.ExportSpans(ctx, spans)
	rejected := min(e.requests.rejected, len(spans))
	switch {
	case err == nil || rejected > 0:
		e.counts.done(len(spans), len(spans)-rejected, resultRejected)
	case ctx.Err() != nil:
		e.counts.done(len(spans), 0, resultShutdown)
	default:
		e.counts.done(len(spans), 0, resultRejected)
	}
	return nil
}

// Shutdown implements sdktrace.SpanExporter. The batch processor calls it after
// the last batch.
func (e *exporter) Shutdown(ctx context.Context) error {
	defer close(e.ended)
	defer e.requests.transport.CloseIdleConnections()
	return e.SpanExporter.Shutdown(ctx)
}

func (r *requests) overHTTP(o *Options, config *tls.Config) otlptrace.Client {
	r.transport.TLSClientConfig, r.transport.MaxIdleConns = config, 1
	options := []otlptracehttp.Option{
		otlptracehttp.WithEndpoint(o.Endpoint.Host), otlptracehttp.WithURLPath(o.Endpoint.Path),
		otlptracehttp.WithHTTPClient(&http.Client{Transport: r, CheckRedirect: noRedirect, Timeout: sendTimeout}),
		otlptracehttp.WithRetry(otlptracehttp.RetryConfig{Enabled: true, InitialInterval: o.Retry, MaxInterval: retryMax}),
	}
	if config == nil {
		options = append(options, otlptracehttp.WithInsecure())
	} else {
		options = append(options, otlptracehttp.WithTLSClientConfig(config))
	}
	return otlptracehttp.NewClient(options...)
}

// noRedirect refuses redirects, which could send secret headers to another receiver.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

func (r *requests) overGRPC(o *Options, config *tls.Config) otlptrace.Client {
	options := []otlptracegrpc.Option{
		otlptracegrpc.WithEndpoint(o.Endpoint.Host),
		// This timeout would bound all retries together; call bounds each request.
		otlptracegrpc.WithTimeout(0),
		otlptracegrpc.WithRetry(otlptracegrpc.RetryConfig{Enabled: true, InitialInterval: o.Retry, MaxInterval: retryMax}),
		otlptracegrpc.WithReconnectionPeriod(time.Second),
		otlptracegrpc.WithDialOption(grpc.WithUnaryInterceptor(r.call), grpc.WithDisableServiceConfig()),
	}
	if config == nil {
		options = append(options, otlptracegrpc.WithInsecure())
	} else {
		options = append(options, otlptracegrpc.WithTLSCredentials(credentials.NewTLS(config)))
	}
	return otlptracegrpc.NewClient(options...)
}
