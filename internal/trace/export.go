package trace

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.yaml.in/yaml/v3"
)

// exporter is the SDK's OTLP exporter, with the results of spans counted. The
// batch processor calls ExportSpans for one batch at a time.
type exporter struct {
	sdktrace.SpanExporter
	counts *counts
	idle   func() // closes idle connections

	aborted context.Context // done after abort
	abort   context.CancelFunc
	ended   chan struct{} // closed by Shutdown
}

func newExporter(o *Options, c *counts) (*exporter, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConns = 1
	options := []otlptracehttp.Option{
		otlptracehttp.WithEndpoint(o.Endpoint.Host), otlptracehttp.WithURLPath(o.Endpoint.Path),
		otlptracehttp.WithRetry(otlptracehttp.RetryConfig{Enabled: true, InitialInterval: o.Retry, MaxInterval: retryMax}),
		otlptracehttp.WithHTTPClient(&http.Client{Transport: &attempts{transport, c}, CheckRedirect: noRedirect, Timeout: sendTimeout}),
	}
	if o.HeadersFile != "" {
		headers, err := ReadHeaders(o.HeadersFile)
		if err != nil {
			return nil, err
		}
		options = append(options, otlptracehttp.WithHeaders(headers))
	}
	if o.Endpoint.TLS {
		transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
		if o.CAFile != "" {
			pool, err := ReadCAs(o.CAFile)
			if err != nil {
				return nil, err
			}
			transport.TLSClientConfig.RootCAs = pool
		}
	} else {
		options = append(options, otlptracehttp.WithInsecure())
	}
	sdk, err := otlptracehttp.New(context.Background(), options...)
	if err != nil {
		return nil, err
	}
	e := &exporter{SpanExporter: sdk, counts: c, idle: transport.CloseIdleConnections, ended: make(chan struct{})}
	e.aborted, e.abort = context.WithCancel(context.Background())
	return e, nil
}

// ExportSpans implements sdktrace.SpanExporter. It returns when the receiver has
// accepted or rejected the spans, or after abort. It returns no error, because counts
// records it.
func (e *exporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(e.aborted, cancel)()
	err := e.SpanExporter.ExportSpans(ctx, spans)
	switch {
	case err == nil:
		e.counts.done(len(spans), resultSent, nil)
	case ctx.Err() != nil:
		e.counts.done(len(spans), resultShutdown, err)
	default:
		e.counts.done(len(spans), resultRejected, err)
	}
	return nil
}

// Shutdown implements sdktrace.SpanExporter. The batch processor calls it after
// the last batch.
func (e *exporter) Shutdown(ctx context.Context) error {
	defer close(e.ended)
	defer e.idle()
	return e.SpanExporter.Shutdown(ctx)
}

// attempts is the http.RoundTripper that counts requests: the SDK's exporter does
// not report retries.
type attempts struct {
	http.RoundTripper
	counts *counts
}

// temporary is an error that the SDK's exporter retries. Without it, the exporter
// drops the batch if the receiver cannot be reached.
type temporary struct{ error }

// Temporary implements the interface that url.Error looks for.
func (temporary) Temporary() bool { return true }

// RoundTrip implements http.RoundTripper.
func (a *attempts) RoundTrip(q *http.Request) (*http.Response, error) {
	reply, err := a.RoundTripper.RoundTrip(q)
	if err != nil {
		a.counts.request(err)
		return nil, temporary{err}
	}
	if reply.StatusCode < 200 || reply.StatusCode > 299 {
		err = errors.New(reply.Status)
	}
	a.counts.request(err)
	return reply, nil
}

// noRedirect refuses redirects, which could send secret headers to another receiver.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// Endpoint is the address of a receiver of OTLP over HTTP.
type Endpoint struct {
	TLS bool
	// Host is HOST:PORT.
	Host string
	Path string
}

// ParseEndpoint parses the address of a receiver. Its errors do not contain
// passwords.
func ParseEndpoint(s string) (Endpoint, error) {
	const form = "accepted is http://HOST:4318 or https://HOST:4318/PATH"
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Host == "" || u.Hostname() == "" || u.Opaque != "":
		return Endpoint{}, errors.New("is not an address with a scheme and a host; " + form)
	case u.Scheme != "http" && u.Scheme != "https":
		return Endpoint{}, fmt.Errorf("has the scheme %.20q; %s", u.Scheme, form)
	case u.User != nil:
		return Endpoint{}, errors.New("has a user or a password in it; put them into a header of --otlp.headers-file")
	case u.RawQuery != "" || u.Fragment != "" || u.ForceQuery:
		return Endpoint{}, errors.New("has a query or a fragment; " + form)
	}
	e := Endpoint{TLS: u.Scheme == "https", Host: u.Host, Path: u.EscapedPath()}
	if e.Path == "" || e.Path == "/" {
		e.Path = "/v1/traces"
	}
	if u.Port() == "" {
		e.Host = net.JoinHostPort(u.Hostname(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
	}
	return e, nil
}

// ReadHeaders reads a file of headers, a YAML map of names to values. Its errors
// contain no text of the file, which may be secret.
func ReadHeaders(path string) (map[string]string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	headers := map[string]string{}
	if yaml.Unmarshal(data, &headers) != nil {
		return nil, fmt.Errorf("%s: is no YAML map of headers (its text may be secret and is not shown); accepted is one line NAME: \"VALUE\" for each header", path)
	}
	for name, value := range headers {
		if strings.ContainsFunc(name+value, func(r rune) bool { return r < ' ' || r > '~' }) {
			return nil, fmt.Errorf("%s: header %.80q has other characters than printable ASCII", path, name)
		}
	}
	return headers, nil
}

// ReadCAs reads a file of PEM certificates.
func ReadCAs(path string) (*x509.CertPool, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(data) {
		return nil, fmt.Errorf("%s: found no certificate; accepted are one or more as PEM", path)
	}
	return pool, nil
}
