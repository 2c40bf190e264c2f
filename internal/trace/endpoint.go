package trace

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
)

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
