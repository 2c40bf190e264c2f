package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/accel-exporter/accel-exporter/internal/remediation"
)

// hooks tells hooks that have a URL. The key is in a header too, for tools that
// take a repeated request for the same one.
type hooks struct {
	client *http.Client
	held   func() (until time.Time, err error) // whether this process may act
}

func newHooks(held func() (time.Time, error)) hooks {
	// A redirect is an error: nobody has written down where it leads.
	here := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return hooks{&http.Client{CheckRedirect: here}, held}
}

func (h hooks) call(ctx context.Context, url string, c *remediation.Call) error {
	body, err := json.Marshal(c)
	if err != nil {
		return err
	}
	if _, err := h.held(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", c.Key)
	resp, err := h.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	// Read to its end, within bounds, so that the connection is used again.
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10))
	if resp.StatusCode >= 300 {
		return fmt.Errorf("hook %s: %s", c.Hook, resp.Status)
	}
	return nil
}
