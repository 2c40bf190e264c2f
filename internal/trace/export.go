package trace

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
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

// Endpoint is the address of a receiver.
type Endpoint struct {
	// GRPC selects OTLP over gRPC instead of HTTP.
	GRPC bool
	TLS  bool
	// Host is HOST:PORT.
	Host string
	// Path is the path of HTTP, empty for gRPC.
	Path string
}

// The default ports of OTLP.
const (
	portHTTP = "4318"
	portGRPC = "4317"
)

// ParseEndpoint parses the address of a receiver. Its errors do not contain
// passwords.
func ParseEndpoint(s string) (Endpoint, error) {
	const form = "accepted is http://HOST:4318, https://HOST:4318/PATH, grpc://HOST:4317 or grpcs://HOST:4317"
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Host == "" || u.Hostname() == "" || u.Opaque != "":
		return Endpoint{}, errors.New("is not an address with a scheme and a host; " + form)
	case u.User != nil:
		return Endpoint{}, errors.New("has a user or a password in it; put them into a header of --otlp.headers-file")
	case u.RawQuery != "" || u.Fragment != "" || u.ForceQuery:
		return Endpoint{}, errors.New("has a query or a fragment; " + form)
	}
	e := Endpoint{TLS: u.Scheme == "https" || u.Scheme == "grpcs", GRPC: strings.HasPrefix(u.Scheme, "grpc")}
	port := u.Port()
	switch u.Scheme {
	case "http", "https":
		e.Path = u.EscapedPath()
		if e.Path == "" || e.Path == "/" {
			e.Path = "/v1/traces"
		}
		if port == "" {
			port = portHTTP
		}
	case "grpc", "grpcs":
		if u.Path != "" && u.Path != "/" {
			return Endpoint{}, fmt.Errorf("has the path %.80q, but gRPC has none; %s", u.Path, form)
		}
		if port == "" {
			port = portGRPC
		}
	default:
		return Endpoint{}, fmt.Errorf("has the scheme %.20q; %s", u.Scheme, form)
	}
	e.Host = net.JoinHostPort(u.Hostname(), port)
	return e, nil
}
