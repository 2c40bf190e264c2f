package trace

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync/atomic"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.yaml.in/yaml/v3"
)

// newExporter returns the SDK's OTLP exporter, and a function that closes its idle
// connections.
func newExporter(o *Options) (sdktrace.SpanExporter, func(), error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConns = 1
	options := []otlptracehttp.Option{
		otlptracehttp.WithEndpoint(o.Endpoint.Host), otlptracehttp.WithURLPath(o.Endpoint.Path),
		otlptracehttp.WithRetry(otlptracehttp.RetryConfig{Enabled: true, InitialInterval: o.Retry, MaxInterval: retryMax}),
		otlptracehttp.WithHTTPClient(&http.Client{Transport: &attempts{RoundTripper: transport, log: o.Log}, CheckRedirect: noRedirect, Timeout: sendTimeout}),
	}
	if o.HeadersFile != "" {
		headers, err := ReadHeaders(o.HeadersFile)
		if err != nil {
			return nil, nil, err
		}
		options = append(options, otlptracehttp.WithHeaders(headers))
	}
	if o.Endpoint.TLS {
		transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
		if o.CAFile != "" {
			pool, err := ReadCAs(o.CAFile)
			if err != nil {
				return nil, nil, err
			}
			transport.TLSClientConfig.RootCAs = pool
		}
	} else {
		options = append(options, otlptracehttp.WithInsecure())
	}
	sdk, err := otlptracehttp.New(context.Background(), options...)
	return sdk, transport.CloseIdleConnections, err
}

// attempts is the http.RoundTripper that logs when requests begin to fail, and when they
// are answered again: the SDK's exporter does not report retries.
type attempts struct {
	http.RoundTripper
	log     *slog.Logger
	failing atomic.Bool
}

// temporary is an error that the SDK's exporter retries. Without it, the exporter
// drops the batch if the receiver cannot be reached.
type temporary struct{ error }

// Temporary implements the interface that url.Error looks for.
func (temporary) Temporary() bool { return true }

// RoundTrip implements http.RoundTripper.
func (a *attempts) RoundTrip(q *http.Request) (*http.Response, error) {
	reply, err := a.RoundTripper.RoundTrip(q)
	failure := err
	if err != nil {
		err = temporary{err}
	} else if reply.StatusCode < 200 || reply.StatusCode > 299 {
		failure = errors.New(reply.Status)
	}
	switch was := a.failing.Swap(failure != nil); {
	case failure == nil && was:
		a.log.Info("Traces are sent again")
	case failure != nil && !was:
		a.log.Warn("A request with traces failed; temporary failures are retried", "err", clip(failure.Error()))
	}
	return reply, err
}

// maxText bounds the text of an error in the log, in bytes.
const maxText = 500

func clip(s string) string {
	if len(s) > maxText {
		s = s[:maxText] + "…"
	}
	return strings.ToValidUTF8(strings.Join(strings.Fields(s), " "), "?")
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
