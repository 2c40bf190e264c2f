package kube

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
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

// Bounds of the credentials, in bytes.
const (
	maxTokenFile = 64 << 10
	maxCAFile    = 1 << 20
)

// prepare reads the credentials, which change while the program runs.
func (c *client) prepare() (*http.Client, string, error) {
	token, err := readToken(c.opts.TokenFile)
	if err != nil {
		return nil, "", err
	}
	var ca string
	if c.opts.CAFile != "" {
		if ca, err = readSmall(c.opts.CAFile, maxCAFile); err != nil {
			return nil, "", fmt.Errorf("certificates: %w", err)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if token != c.tokens[0] {
		c.tokens = [2]string{token, c.tokens[0]}
	}
	if c.http != nil && c.ca == ca {
		return c.http, token, nil
	}
	var roots *x509.CertPool
	if c.opts.CAFile != "" {
		roots = x509.NewCertPool()
		if !roots.AppendCertsFromPEM([]byte(ca)) {
			return nil, "", fmt.Errorf("certificates: no PEM certificate in %s", c.opts.CAFile)
		}
	}
	if c.http != nil {
		c.http.CloseIdleConnections()
	}
	c.ca, c.http = ca, c.newHTTP(roots)
	return c.http, token, nil
}

func readToken(name string) (string, error) {
	if name == "" {
		return "", nil
	}
	token, err := readSmall(name, maxTokenFile)
	if err != nil {
		return "", fmt.Errorf("token: %w", err)
	}
	token = strings.TrimSpace(token)
	if token == "" || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", fmt.Errorf("token: none in %s", name)
	}
	return token, nil
}

func readSmall(name string, limit int64) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("%s has more than %d bytes", name, limit)
	}
	return string(data), err
}
