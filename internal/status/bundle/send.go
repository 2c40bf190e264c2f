package bundle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	sendTimeout = 30 * time.Second
	// lastTimeout bounds the last attempt, when the exporter ends.
	lastTimeout = 2 * time.Second
	firstPause  = 5 * time.Second
	longPause   = 10 * time.Minute
)

// namePart is replaced by the name of the bundle.
const namePart = "{name}"

// Target is a URL that receives bundles by HTTP PUT.
type Target struct {
	url     string
	headers func() (map[string]string, error)
	client  *http.Client
}

// NewTarget returns the receiver at a URL. {name} in it, or the end of a path that ends
// with a slash, is replaced by the name of the bundle; any other URL is used as it is, such
// as one that is signed for one object. headers are read at each attempt, so that they can
// be renewed.
func NewTarget(text string, headers func() (map[string]string, error)) (*Target, error) {
	u, err := url.Parse(strings.ReplaceAll(text, namePart, "name"))
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("is no URL of the form http://HOST/PATH or https://HOST/PATH") // without the text, which may be secret
	}
	client := &http.Client{
		Timeout: sendTimeout,
		// A redirect would get the headers, which may be credentials.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return &Target{text, headers, client}, nil
}

func (t *Target) of(name string) string {
	u := strings.ReplaceAll(t.url, namePart, name)
	if path, query, _ := strings.Cut(u, "?"); u == t.url && strings.HasSuffix(path, "/") {
		u = path + name
		if query != "" {
			u += "?" + query
		}
	}
	return u
}

// shown is the URL of a bundle without its secrets: user, password, and the query, which
// has the signature of a signed URL.
func (t *Target) shown(name string) string {
	if t == nil {
		return ""
	}
	u, err := url.Parse(t.of(name))
	if err != nil {
		return ""
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return u.String()
}

// put sends a bundle once. Its error has no part of the URL and of the headers.
func (t *Target) put(ctx context.Context, name string, data []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, t.of(name), bytes.NewReader(data))
	if err != nil {
		return errors.New("the URL is invalid")
	}
	req.Header.Set("Content-Type", "application/gzip")
	if t.headers != nil {
		headers, err := t.headers()
		if err != nil {
			return err
		}
		for name, value := range headers {
			req.Header.Set(name, value)
		}
	}
	resp, err := t.client.Do(req)
	if err != nil {
		if u := (*url.Error)(nil); errors.As(err, &u) {
			err = u.Err
		}
		return err
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, 64<<10) // so that the connection can be used again
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("status %d", resp.StatusCode)
	}
	return nil
}

// send sends the bundles in the directory, the latest first, until ctx is done. A bundle
// that is refused is tried again later, and the next one meanwhile.
func (r *Recorder) send(ctx context.Context) {
	pause := firstPause
	for {
		wait := longPause
		if r.sendAll(ctx) {
			pause = firstPause
		} else {
			wait, pause = pause, min(2*pause, longPause)
		}
		retry := time.NewTimer(wait)
		select {
		case <-r.put:
		case <-retry.C:
		case <-ctx.Done():
			retry.Stop()
			return
		}
		retry.Stop()
	}
}

// sendAll sends each bundle that was not sent, and reports whether every bundle is sent. Of
// a bundle that is being recorded each copy is sent, in case that the node does not live for
// another minute, and the whole takes its place at the receiver.
func (r *Recorder) sendAll(ctx context.Context) bool {
	all := true
	for _, f := range r.List() {
		copied := r.records(f.Name)
		if f.Sent || copied && f.SHA256 == r.copied {
			continue
		}
		if ctx.Err() != nil {
			return false
		}
		data, err := ReadFile(r.store.path(f.Name))
		if err == nil {
			err = r.o.Target.put(ctx, f.Name, data)
		}
		count(r.counts.puts, err)
		if err != nil {
			all = false
			if errors.Is(err, fs.ErrNotExist) {
				continue // look forgets it
			}
			r.o.Log.Warn("Evidence could not be sent; it stays in the directory", "file", f.Name, "url", r.o.Target.shown(f.Name), "err", err)
			continue
		}
		if copied {
			r.copied = f.SHA256
			r.o.Log.Info("A first copy of evidence was sent", "file", f.Name, "url", r.o.Target.shown(f.Name))
			continue
		}
		if f, err = r.store.sent(f.Name); err != nil {
			r.o.Log.Warn("Evidence was sent, and will be sent again after a restart", "file", f.Name, "err", err)
		}
		r.o.Log.Info("Evidence was sent", "file", f.Name, "url", r.o.Target.shown(f.Name))
		r.mu.Lock()
		r.follow(f)
		r.mu.Unlock()
	}
	return all
}

// records reports whether a bundle is being recorded, so that it will be replaced.
func (r *Recorder) records(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.writing == name || r.pending != nil && r.pending.name == name
}
