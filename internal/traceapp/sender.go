package traceapp

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/accel-exporter/accel-exporter/internal/traceproc"
)

// sendTimeout is what one request has, as the specification of OTLP has it by
// default.
const sendTimeout = 10 * time.Second

// sender sends spans to one receiver.
type sender struct {
	log      *slog.Logger
	exporter *otlptrace.Exporter
	base     *resource.Resource // what all spans have in common
	headers  *headers
	answer   answer // of the request under way
}

func newSender(s traceproc.Settings, log *slog.Logger) (*sender, error) {
	// What the SDK has to say beside its results goes to the exporter's log.
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Warn("OpenTelemetry complains", "err", clip(err.Error())) }))
	out := &sender{log: log, headers: &headers{path: s.HeadersFile}}
	if err := out.headers.read(); err != nil {
		return nil, err
	}
	var err error
	if out.base, err = describe(&s); err != nil {
		return nil, err
	}
	var config *tls.Config
	if s.Endpoint.TLS {
		config = &tls.Config{MinVersion: tls.VersionTLS12}
		if s.CAFile != "" {
			if config.RootCAs, err = traceproc.ReadCAs(s.CAFile); err != nil {
				return nil, err
			}
		}
	}
	client := out.overHTTP
	if s.Endpoint.GRPC {
		client = out.overGRPC
	}
	out.exporter, err = otlptrace.New(context.Background(), client(&s.Endpoint, config))
	return out, err
}

// describe returns the resource of this exporter. What the environment says by
// OTEL_RESOURCE_ATTRIBUTES and OTEL_SERVICE_NAME stands.
func describe(s *traceproc.Settings) (*resource.Resource, error) {
	own := texts{}
	own.add(semconv.ServiceNameKey, "accel-exporter")
	own.add(semconv.ServiceVersionKey, s.Version)
	own.add(semconv.HostNameKey, s.Host)
	own.add(semconv.K8SNodeNameKey, s.Node)
	r, err := resource.New(context.Background(), resource.WithSchemaURL(semconv.SchemaURL),
		resource.WithTelemetrySDK(), resource.WithAttributes(own...), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	return r, nil
}

func (s *sender) overHTTP(e *traceproc.Endpoint, config *tls.Config) otlptrace.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig, transport.MaxIdleConns = config, 1
	options := []otlptracehttp.Option{
		otlptracehttp.WithEndpoint(e.Host), otlptracehttp.WithURLPath(e.Path),
		otlptracehttp.WithHTTPClient(&http.Client{Transport: &watched{transport, s}, CheckRedirect: noRedirect}),
		otlptracehttp.WithRetry(otlptracehttp.RetryConfig{}),
	}
	if config == nil {
		options = append(options, otlptracehttp.WithInsecure())
	} else {
		options = append(options, otlptracehttp.WithTLSClientConfig(config))
	}
	return otlptracehttp.NewClient(options...)
}

// noRedirect: headers may be secret, and are for the receiver that was named.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

func (s *sender) overGRPC(e *traceproc.Endpoint, config *tls.Config) otlptrace.Client {
	options := []otlptracegrpc.Option{
		otlptracegrpc.WithEndpoint(e.Host),
		otlptracegrpc.WithRetry(otlptracegrpc.RetryConfig{}),
		otlptracegrpc.WithReconnectionPeriod(time.Second),
		otlptracegrpc.WithDialOption(grpc.WithUnaryInterceptor(s.watchCall), grpc.WithDisableServiceConfig()),
	}
	if config == nil {
		options = append(options, otlptracegrpc.WithInsecure())
	} else {
		options = append(options, otlptracegrpc.WithTLSCredentials(credentials.NewTLS(config)))
	}
	return otlptracegrpc.NewClient(options...)
}

// Send implements traceproc.Sender.
func (s *sender) Send(spans []traceproc.Span) traceproc.Outcome {
	if err := s.headers.read(); err != nil {
		s.log.Error("Headers are not read again; those of before hold", "err", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), sendTimeout)
	defer cancel()
	made := s.spans(spans)
	left := len(spans) - len(made)
	if len(made) == 0 {
		return traceproc.Outcome{Unsampled: left}
	}
	s.answer = answer{}
	err := s.exporter.ExportSpans(ctx, made)
	out := s.answer.outcome(len(made), err)
	if !out.Retry {
		out.Unsampled = left
	}
	return out
}

// Close implements traceproc.Sender.
func (s *sender) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	// Whatever it says, the process ends now.
	_ = s.exporter.Shutdown(ctx)
}

// headers are those of a file, which is read again when it changes.
type headers struct {
	path  string
	known os.FileInfo
	now   map[string]string
}

func (h *headers) read() error {
	if h.path == "" {
		return nil
	}
	info, err := os.Stat(h.path)
	if err != nil {
		return err
	}
	if h.known != nil && os.SameFile(info, h.known) && info.ModTime().Equal(h.known.ModTime()) && info.Size() == h.known.Size() {
		return nil
	}
	now, err := traceproc.ReadHeaders(h.path)
	if err != nil {
		return err
	}
	h.known, h.now = info, now
	return nil
}

// maxText bounds what is told of an error, in bytes.
const maxText = 500

func clip(s string) string {
	if len(s) > maxText {
		s = s[:maxText] + "…"
	}
	return strings.ToValidUTF8(strings.Join(strings.Fields(s), " "), "?")
}
