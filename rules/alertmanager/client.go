package alertmanager

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/go-openapi/runtime"
	openapi "github.com/go-openapi/runtime/client"
	"github.com/go-openapi/strfmt"
	"github.com/prometheus/alertmanager/api/v2/client/alert"
	"github.com/prometheus/alertmanager/api/v2/models"
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
	secrets *secrets
	api     alert.ClientService
	close   func() // closes idle connections
	scheme  string
	// date is the time of day of the server in its last response, and dated when
	// that came.
	date, dated time.Time
}

// maxSkew is how far the clocks of the node and of a server may differ before alerts
// get the times of the server. It is less than the validity of an alert.
const maxSkew = time.Minute

// ahead returns by how much the clock of the server was ahead of the node's at made,
// zero for less than maxSkew. By a clock that is behind, every alert would be over
// when it arrives.
func (c *client) ahead(made time.Time) time.Duration {
	if c.date.IsZero() {
		return 0
	}
	d := c.date.Add(made.Sub(c.dated)).Sub(made)
	if d.Abs() < maxSkew {
		return 0
	}
	return d
}

// newClient reads the certificates, to find mistakes in them before use.
// Credentials are read at each request.
func newClient(u *url.URL, h HTTP, dial dialFunc) (*client, error) {
	c := &client{timeout: h.Timeout, scheme: u.Scheme, secrets: &secrets{username: h.BasicAuth.Username}}
	cfg := config.HTTPClientConfig{
		ProxyConfig: config.ProxyConfig{ProxyFromEnvironment: true},
		TLSConfig: config.TLSConfig{
			CARef: h.TLS.CAFile, CertRef: h.TLS.CertFile, KeyRef: h.TLS.KeyFile,
			ServerName: h.TLS.ServerName, InsecureSkipVerify: h.TLS.InsecureSkipVerify,
		},
		FollowRedirects: false, // a redirect could send the credentials elsewhere
	}
	switch {
	case h.CredentialsFile != "":
		c.secrets.credential = h.CredentialsFile
		cfg.Authorization = &config.Authorization{Type: "Bearer", CredentialsRef: h.CredentialsFile}
	case h.BasicAuth.PasswordFile != "":
		c.secrets.credential = h.BasicAuth.PasswordFile
		cfg.BasicAuth = &config.BasicAuth{Username: h.BasicAuth.Username, PasswordRef: h.BasicAuth.PasswordFile}
	}
	options := []config.HTTPClientOption{
		config.WithSecretManager(c.secrets), config.WithHTTP2Disabled(), config.WithIdleConnTimeout(idle), config.WithUserAgent("accel-exporter"),
	}
	if dial != nil {
		options = append(options, config.WithDialContextFunc(config.DialContextFunc(dial)))
	}
	made, err := config.NewClientFromConfig(cfg, "alertmanager", options...)
	if err != nil {
		return nil, err
	}
	c.close = made.CloseIdleConnections
	made = &http.Client{Transport: adapted{made.Transport}, CheckRedirect: made.CheckRedirect}
	transport := openapi.NewWithClient(u.Host, u.Path+"/api/v2", []string{u.Scheme}, made)
	// With the variable DEBUG it prints requests with their credentials.
	transport.Debug = false
	c.api = alert.New(transport, strfmt.Default)
	return c, nil
}

// adapted adapts requests and responses for the API client.
type adapted struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (p adapted) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	// A notification is idempotent, so the transport may retry on another
	// connection if the server closed this one. The header is not sent.
	req.Header["Idempotency-Key"] = nil
	resp, err := p.RoundTripper.RoundTrip(req)
	if resp != nil {
		// Only the status counts, and the API client fails on a content type
		// that it cannot parse.
		resp.Header.Del("Content-Type")
	}
	return resp, err
}

// post sends alerts. Errors show no credentials.
func (c *client) post(ctx context.Context, items []*item) answer {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	alerts := make(models.PostableAlerts, len(items))
	for i, it := range items {
		alerts[i] = it.at(c.ahead(it.made))
	}
	var a answer
	read := func(resp runtime.ClientResponse, _ runtime.Consumer) (any, error) {
		now := time.Now()
		a = readAnswer(resp, now)
		if date, err := http.ParseTime(resp.GetHeader("Date")); err == nil {
			c.date, c.dated = date, now
		}
		return alert.NewPostAlertsOK(), nil
	}
	params := alert.NewPostAlertsParamsWithContext(ctx).WithAlerts(alerts)
	_, err := c.api.PostAlerts(params, func(op *runtime.ClientOperation) {
		op.Reader = runtime.ClientResponseReaderFunc(read)
	})
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err // the log line has the address
	}
	if err != nil {
		a = noAnswer(err)
	}
	if a.failed() {
		a.err = errors.New(c.secrets.clean(a.err.Error()))
	}
	return a
}

// plain reports whether credentials are sent unencrypted.
func (c *client) plain() bool { return c.scheme == "http" && c.secrets.credential != "" }
