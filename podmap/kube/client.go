package kube

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
)

// maxError limits the body of a refusal, in bytes.
const maxError = 64 << 10

// maxAfter limits the wait that a server may request.
const maxAfter = 5 * time.Minute

// client sends requests to the API server. It is safe for concurrent use.
type client struct {
	opts *Options

	mu sync.Mutex // guards what follows
	// tokens are the latest and the previous token, which a request may still
	// carry: errors must not contain them.
	tokens [2]string
	ca     string // what http was made for
	http   *http.Client

	// connMu is separate, since http may close connections while mu is locked.
	connMu sync.Mutex
	conns  map[*conn]struct{} // that are open
}

// get sends a request. Options.Timeout limits the time to the end of its
// answer, unless the caller resets the answer's timer.
func (c *client) get(ctx context.Context, path string, query url.Values) (*answer, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	a := &answer{ctx: ctx, cancel: cancel}
	a.timer = time.AfterFunc(c.opts.Timeout, func() { cancel(errSlow) })
	resp, err := c.send(ctx, path, query)
	if err != nil {
		a.close()
		return nil, c.clean(failed(ctx, err))
	}
	a.body = resp.Body
	if resp.StatusCode != http.StatusOK {
		err := c.refusal(resp)
		a.close()
		return nil, c.clean(err)
	}
	return a, nil
}

// answer is an answer with status 200.
type answer struct {
	ctx    context.Context // the request's, which its body goes on with
	cancel context.CancelCauseFunc
	timer  *time.Timer
	body   io.ReadCloser
}

func (a *answer) close() {
	a.timer.Stop()
	a.cancel(nil)
	if a.body != nil {
		a.body.Close()
	}
}

func (c *client) send(ctx context.Context, path string, query url.Values) (*http.Response, error) {
	hc, token, err := c.prepare()
	if err != nil {
		return nil, &failure{outcome: OutcomeCredentials, err: err}
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

// refusal reads the API Status of an answer other than 200.
func (c *client) refusal(resp *http.Response) *failure {
	f := &failure{outcome: statusOutcome(resp.StatusCode)}
	var s status
	if newDecoder(resp.Body, maxError).value(&s) != nil || s.Message == "" && s.Reason == "" {
		f.err = fmt.Errorf("status %d", resp.StatusCode)
	} else {
		f.err = fmt.Errorf("status %d: %w", resp.StatusCode, &s)
	}
	seconds := s.Details.RetryAfterSeconds
	if header, err := strconv.ParseInt(resp.Header.Get("Retry-After"), 10, 64); err == nil {
		seconds = header
	}
	f.after = waitOf(seconds)
	return f
}

func waitOf(seconds int64) time.Duration {
	return time.Duration(min(max(0, seconds), int64(maxAfter/time.Second))) * time.Second
}

// clean removes the token from an error, in case a server has repeated it.
func (c *client) clean(f *failure) *failure {
	c.mu.Lock()
	defer c.mu.Unlock()
	text := f.Error()
	for _, token := range c.tokens {
		if token != "" {
			text = strings.ReplaceAll(text, token, "[token]")
		}
	}
	return &failure{outcome: f.outcome, after: f.after, err: errors.New(clip(text))}
}
