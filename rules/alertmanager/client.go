package alertmanager

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/prometheus/common/config"
)

// idle is how long a connection is kept for the next request. It is shorter
// than the timeouts of servers and proxies, so that they do not close a
// connection that is about to be used.
const idle = 30 * time.Second

type dialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// client posts alerts to one endpoint.
type client struct {
	timeout time.Duration
	http    *http.Client
	address string
	plain   bool // credentials are sent unencrypted
}

// newClient reads the certificates, to find mistakes in them before use. They and the
// credentials are read again at each request.
func newClient(u *url.URL, h HTTP, dial dialFunc) (*client, error) {
	cfg := config.HTTPClientConfig{
		ProxyConfig: config.ProxyConfig{ProxyFromEnvironment: true},
		TLSConfig: config.TLSConfig{
			CAFile: h.TLS.CAFile, CertFile: h.TLS.CertFile, KeyFile: h.TLS.KeyFile,
			ServerName: h.TLS.ServerName, InsecureSkipVerify: h.TLS.InsecureSkipVerify,
		},
		FollowRedirects: false, // a redirect could send the credentials elsewhere
	}
	if h.CredentialsFile != "" {
		cfg.Authorization = &config.Authorization{Type: "Bearer", CredentialsFile: h.CredentialsFile}
	}
	if h.BasicAuth != (BasicAuth{}) {
		cfg.BasicAuth = &config.BasicAuth{Username: h.BasicAuth.Username, PasswordFile: h.BasicAuth.PasswordFile}
	}
	options := []config.HTTPClientOption{config.WithHTTP2Disabled(), config.WithIdleConnTimeout(idle), config.WithUserAgent("accel-exporter")}
	if dial != nil {
		options = append(options, config.WithDialContextFunc(config.DialContextFunc(dial)))
	}
	made, err := config.NewClientFromConfig(cfg, "alertmanager", options...)
	if err != nil {
		return nil, err
	}
	return &client{
		timeout: h.Timeout, http: made, address: u.JoinPath("api/v2/alerts").String(),
		plain: u.Scheme == "http" && (cfg.Authorization != nil || cfg.BasicAuth != nil),
	}, nil
}

// post sends alerts.
func (c *client) post(ctx context.Context, items []*item) answer {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.address, bytes.NewReader(body(items)))
	if err != nil {
		return noAnswer(err)
	}
	req.Header.Set("Content-Type", "application/json")
	// A notification is idempotent, so the transport may retry on another
	// connection if the server closed this one. The header is not sent.
	req.Header["Idempotency-Key"] = nil
	resp, err := c.http.Do(req)
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err // the log line has the address
	}
	if err != nil {
		return noAnswer(err)
	}
	defer resp.Body.Close()
	return readAnswer(resp)
}

func (c *client) close() { c.http.CloseIdleConnections() }
