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

// hooks calls the hooks that have a URL. The key is also in a header, for tools
// that ignore a repeated request by it.
type hooks struct {
	client *http.Client
	valid  func() (until time.Time, err error) // whether this process may act
}

func newHooks(valid func() (time.Time, error)) hooks {
	// A redirect is an error: the policy names the only address.
	here := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return hooks{&http.Client{CheckRedirect: here}, valid}
}

func (h hooks) call(ctx context.Context, url string, c *remediation.Call) error {
	body, err := json.Marshal(c)
	if err != nil {
		return err
	}
	if _, err := h.valid(); err != nil {
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
	// Reading the body, within bounds, lets the connection be used again.
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10))
	if resp.StatusCode >= 300 {
		return fmt.Errorf("hook %s: %s", c.Hook, resp.Status)
	}
	return nil
}
