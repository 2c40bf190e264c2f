package kube

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
)

const (
	maxAnswer = 64 << 20 // bytes of a list, and of an event of a watch
	maxError  = 300      // bytes of an error
	// maxAfter limits the wait that a server may request.
	maxAfter = 5 * time.Minute
)

var (
	errSlow  = errors.New("no answer in time")
	errLarge = errors.New("larger than the limit")
	errJSON  = errors.New("not JSON")
)

// client sends requests to the API server. It is safe for concurrent use.
type client struct {
	opts *Options

	mu sync.Mutex // guards the fields below
	// tokens are the latest and the previous token, which a request may still
	// carry: errors must not contain them.
	tokens [2]string
	ca     string // the certificates of http
	http   *http.Client
}

// refusal is the API Status of a failed request, or of an ERROR event of a watch.
type refusal struct {
	Code    int    `json:"code"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
	Details struct {
		RetryAfterSeconds int64 `json:"retryAfterSeconds"`
	} `json:"details"`
}

func (r *refusal) Error() string {
	text := fmt.Sprintf("status %d", r.Code)
	for _, detail := range []string{r.Message, r.Reason} {
		if detail != "" {
			return text + ": " + detail
		}
	}
	return text
}

// refused returns the status code of a refused request, and the wait that the
// server requests. Both are zero for any other error.
func refused(err error) (code int, wait time.Duration) {
	r, ok := errors.AsType[*refusal](err)
	if !ok {
		return 0, 0
	}
	seconds := min(max(0, r.Details.RetryAfterSeconds), int64(maxAfter/time.Second))
	return r.Code, time.Duration(seconds) * time.Second
}

// answer is an answer with status 200.
type answer struct {
	ctx    context.Context // the request's
	cancel context.CancelCauseFunc
	timer  *time.Timer
	body   io.ReadCloser
	read   io.LimitedReader
	most   int64 // bytes of one JSON value
	json   *json.Decoder
}

// get sends a request. Options.Timeout limits the time to the end of its
// answer, unless the caller resets the answer's timer.
func (c *client) get(ctx context.Context, path string, query url.Values) (*answer, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	a := &answer{ctx: ctx, cancel: cancel, most: maxAnswer}
	a.timer = time.AfterFunc(c.opts.Timeout, func() { cancel(errSlow) })
	resp, err := c.send(ctx, path, query)
	if err != nil {
		a.close()
		return nil, a.failure(err)
	}
	a.body = resp.Body
	a.read.R = resp.Body
	a.json = json.NewDecoder(&a.read)
	if resp.StatusCode == http.StatusOK {
		return a, nil
	}
	defer a.close()
	r := &refusal{}
	_ = a.next(r) // a proxy may answer with something else
	r.Code = resp.StatusCode
	if header, err := strconv.ParseInt(resp.Header.Get("Retry-After"), 10, 64); err == nil {
		r.Details.RetryAfterSeconds = header
	}
	return nil, r
}

func (c *client) send(ctx context.Context, path string, query url.Values) (*http.Response, error) {
	hc, token, err := c.prepare()
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.opts.Server+path+"?"+query.Encode(), http.NoBody)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "accel-exporter")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := hc.Do(req)
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err // without the address, which is known
	}
	return resp, err
}

// next decodes the next JSON value of the answer into v. A field of another type
// than v's stays empty. It returns io.EOF if the answer ends after a value.
func (a *answer) next(v any) error {
	a.read.N = a.most
	err := a.json.Decode(v)
	if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return nil
	}
	if _, ok := errors.AsType[*json.SyntaxError](err); ok {
		return errJSON
	}
	if err != nil && a.read.N <= 0 {
		return errLarge
	}
	return a.failure(err)
}

// failure returns the reason for an error of the request.
func (a *answer) failure(err error) error {
	if cause := context.Cause(a.ctx); err != nil && errors.Is(cause, errSlow) {
		return cause
	}
	return err
}

func (a *answer) close() {
	a.timer.Stop()
	a.cancel(nil)
	if a.body != nil {
		a.body.Close()
	}
}

// prepare reads the credentials, which change while the program runs.
func (c *client) prepare() (*http.Client, string, error) {
	token, err := readToken(c.opts.TokenFile)
	if err != nil {
		return nil, "", err
	}
	var ca []byte
	if c.opts.CAFile != "" {
		if ca, err = os.ReadFile(c.opts.CAFile); err != nil {
			return nil, "", fmt.Errorf("certificates: %w", err)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if token != c.tokens[0] {
		c.tokens = [2]string{token, c.tokens[0]}
	}
	if c.http != nil && c.ca == string(ca) {
		return c.http, token, nil
	}
	var roots *x509.CertPool
	if c.opts.CAFile != "" {
		roots = x509.NewCertPool()
		if !roots.AppendCertsFromPEM(ca) {
			return nil, "", fmt.Errorf("certificates: no PEM certificate in %s", c.opts.CAFile)
		}
	}
	if c.http != nil {
		c.http.CloseIdleConnections()
	}
	c.ca, c.http = string(ca), c.newHTTP(roots)
	return c.http, token, nil
}

func readToken(name string) (string, error) {
	if name == "" {
		return "", nil
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return "", fmt.Errorf("token: %w", err)
	}
	token := strings.TrimSpace(string(data))
	if token == "" || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", fmt.Errorf("token: none in %s", name)
	}
	return token, nil
}

func (c *client) newHTTP(roots *x509.CertPool) *http.Client {
	return &http.Client{
		// A redirect could lead the token elsewhere.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DialContext:       c.opts.Dial,
			TLSClientConfig:   &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
			ForceAttemptHTTP2: true,
			// Both watches share one connection. Pings distinguish a dead
			// connection from a quiet node.
			HTTP2:               &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second},
			TLSHandshakeTimeout: c.opts.Timeout,
			MaxIdleConnsPerHost: 2,
			IdleConnTimeout:     90 * time.Second,
			// Compression costs the server more than it saves the network.
			DisableCompression: true,
		},
	}
}

// close ends the connections. No request may be running.
func (c *client) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.http != nil {
		c.http.CloseIdleConnections()
	}
}

// describe returns an error as one line of bounded length, without the token in
// case a server has repeated it.
func (c *client) describe(err error) string {
	text := err.Error()
	c.mu.Lock()
	for _, token := range c.tokens {
		if token != "" {
			text = strings.ReplaceAll(text, token, "[token]")
		}
	}
	c.mu.Unlock()
	if len(text) > maxError {
		text = text[:maxError] + "…"
	}
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, ""))
}
