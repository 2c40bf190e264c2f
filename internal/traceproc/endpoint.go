package traceproc

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
)

// Endpoint is where spans go.
type Endpoint struct {
	// GRPC says that it speaks OTLP over gRPC, else it is over HTTP.
	GRPC bool `json:"grpc,omitempty"`
	// TLS says that the connection is encrypted.
	TLS bool `json:"tls,omitempty"`
	// Host is HOST:PORT, Path that of HTTP.
	Host string `json:"host"`
	Path string `json:"path,omitempty"`
}

// Ports of OTLP, by its specification.
const (
	portHTTP = "4318"
	portGRPC = "4317"
)

// ParseEndpoint reads the address of a receiver. A password in it is refused,
// and is not in the error.
func ParseEndpoint(s string) (Endpoint, error) {
	const form = "accepted is http://HOST:4318, https://HOST:4318/PATH, grpc://HOST:4317 or grpcs://HOST:4317"
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Host == "" || u.Hostname() == "" || u.Opaque != "":
		return Endpoint{}, errors.New("is not an address with a scheme and a host; " + form)
	case u.User != nil:
		return Endpoint{}, errors.New("has a user or a password in it; they belong into a header of --otlp.headers-file")
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
			return Endpoint{}, fmt.Errorf("has the path %.80q, and gRPC has none; %s", u.Path, form)
		}
		if port == "" {
			port = portGRPC
		}
	default:
		return Endpoint{}, fmt.Errorf("begins with %.20q; %s", u.Scheme, form)
	}
	e.Host = net.JoinHostPort(u.Hostname(), port)
	return e, nil
}
