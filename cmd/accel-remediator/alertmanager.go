package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/accel-exporter/accel-exporter/internal/remediation"
)

// alertmanagers list alerts. Alertmanagers do not tell each other their alerts, and an
// Alertmanager that has just started lists none, so each answer counts by itself.
type alertmanagers []alertmanager

type alertmanager struct {
	host, url string
	client    *http.Client
}

const (
	// askTimeout bounds one answer.
	askTimeout = 10 * time.Second
	// maxAnswer bounds an answer in bytes, and maxAlerts in alerts. A longer answer
	// is an error: alerts that are missing from a list would count as resolved.
	maxAnswer = 256 << 20
	maxAlerts = 100_000
)

// newAlertmanagers returns the Alertmanagers of some addresses. clientFile has an
// HTTP client configuration of Prometheus; it may be empty.
func newAlertmanagers(urls []string, clientFile string) (alertmanagers, error) {
	client, err := newClient(clientFile, "alertmanager")
	if err != nil {
		return nil, err
	}
	client.Timeout = askTimeout
	var all alertmanagers
	for _, text := range urls {
		u, err := url.Parse(text)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" {
			return nil, errors.New("--alertmanager.url: accepted is http://HOST:PORT or https://HOST:PORT; credentials go into --alertmanager.http.config.file")
		}
		all = append(all, alertmanager{u.Host + strings.TrimSuffix(u.Path, "/"), strings.TrimSuffix(u.String(), "/") + "/api/v2/alerts", client})
	}
	return all, nil
}

// List implements remediation.Source.
func (all alertmanagers) List(ctx context.Context) []remediation.Answer {
	answers := make([]remediation.Answer, len(all))
	var asked sync.WaitGroup
	for i, a := range all {
		asked.Go(func() {
			list, err := a.list(ctx)
			answers[i] = remediation.Answer{Alertmanager: a.host, Alerts: list, Err: err}
		})
	}
	asked.Wait()
	return answers
}

func (a alertmanager) list(ctx context.Context) ([]remediation.Alert, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := a.client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", a.host, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", a.host, resp.Status)
	}
	list, err := decodeAlerts(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("%s: list of alerts: %w", a.host, err)
	}
	return list, nil
}

// gettable is the decoded part of an alert in the API v2 of Alertmanager.
type gettable struct {
	Labels      map[string]string `json:"labels"`
	Annotations struct {
		Summary string `json:"summary"`
		Pods    string `json:"pods"`
	} `json:"annotations"`
	StartsAt time.Time `json:"startsAt"`
	Status   struct {
		State      string   `json:"state"`
		SilencedBy []string `json:"silencedBy"`
	} `json:"status"`
}

// decodeAlerts reads a list alert by alert, so that the whole answer is never in
// memory.
func decodeAlerts(r io.Reader) ([]remediation.Alert, error) {
	dec := json.NewDecoder(r)
	if token, err := dec.Token(); err != nil || token != json.Delim('[') {
		return nil, errors.New("found no list of alerts")
	}
	var list []remediation.Alert
	for dec.More() {
		if len(list) == maxAlerts {
			return nil, fmt.Errorf("found more than %d alerts; accepted are at most that many", maxAlerts)
		}
		var g gettable
		if err := dec.Decode(&g); err != nil {
			return nil, err
		}
		if len(g.Labels) == 0 || g.StartsAt.IsZero() || g.Status.State == "" {
			return nil, errors.New("found an alert without labels, startsAt or status.state")
		}
		list = append(list, remediation.Alert{
			Labels: g.Labels, Summary: g.Annotations.Summary, Pods: strings.Fields(g.Annotations.Pods), StartsAt: g.StartsAt, Suppressed: g.Status.State == "suppressed",
			Inhibited: g.Status.State == "suppressed" && len(g.Status.SilencedBy) == 0,
		})
	}
	if _, err := dec.Token(); err != nil {
		return nil, fmt.Errorf("the list has no end: %w", err)
	}
	return list, nil
}

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
