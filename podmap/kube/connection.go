package kube

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"maps"
	"net"
	"net/http"
	"slices"
	"time"
)

// maxHeader bounds the header of an answer, in bytes.
const maxHeader = 64 << 10

func (c *client) newHTTP(roots *x509.CertPool) *http.Client {
	return &http.Client{
		// A redirect could lead the token elsewhere.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DialContext:       c.dial,
			TLSClientConfig:   &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
			ForceAttemptHTTP2: true,
			// Both watches share one connection. Pings distinguish a dead
			// connection from a quiet node.
			HTTP2:                  &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second},
			TLSHandshakeTimeout:    c.opts.Timeout,
			MaxIdleConnsPerHost:    2,
			IdleConnTimeout:        90 * time.Second,
			MaxResponseHeaderBytes: maxHeader,
			// Compression costs the server more than it saves the network.
			DisableCompression: true,
		},
	}
}

// conn is a connection that client.close closes.
type conn struct {
	net.Conn
	client *client
}

func (c *client) dial(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, c.opts.Timeout)
	defer cancel()
	raw, err := c.opts.Dial(ctx, network, address)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Err: err}
	}
	made := &conn{Conn: raw, client: c}
	c.connMu.Lock()
	defer c.connMu.Unlock()
	if c.conns == nil {
		c.conns = map[*conn]struct{}{}
	}
	c.conns[made] = struct{}{}
	return made, nil
}

func (c *conn) Close() error {
	c.client.connMu.Lock()
	delete(c.client.conns, c)
	c.client.connMu.Unlock()
	return c.Conn.Close()
}

// close ends every connection.
func (c *client) close() {
	c.mu.Lock()
	if c.http != nil {
		c.http.CloseIdleConnections()
	}
	c.mu.Unlock()
	c.connMu.Lock()
	open := slices.Collect(maps.Keys(c.conns))
	c.connMu.Unlock()
	for _, made := range open {
		made.Close()
	}
}
