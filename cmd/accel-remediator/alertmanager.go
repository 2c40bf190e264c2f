package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	openapi "github.com/go-openapi/runtime/client"
	"github.com/go-openapi/strfmt"
	"github.com/prometheus/alertmanager/api/v2/client/alert"
	"github.com/prometheus/common/config"

	"github.com/accel-exporter/accel-exporter/remediation"
)

// alertmanagers list alerts. One that answers is enough: each has all of them,
// and one that has just started, and knows few, takes nothing away from what
// another lists.
type alertmanagers []alertmanager

type alertmanager struct {
	host string
	api  alert.ClientService
}

// askTimeout bounds one answer.
const askTimeout = 10 * time.Second

func newAlertmanagers(urls []string, clientFile string) (alertmanagers, error) {
	cfg := config.DefaultHTTPClientConfig
	if clientFile != "" {
		loaded, _, err := config.LoadHTTPConfigFile(clientFile)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", clientFile, err)
		}
		cfg = *loaded
	}
	cfg.FollowRedirects = false // one could lead the credentials elsewhere
	client, err := config.NewClientFromConfig(cfg, "alertmanager")
	if err != nil {
		return nil, err
	}
	client.Timeout = askTimeout
	var all alertmanagers
	for _, text := range urls {
		u, err := url.Parse(text)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil {
			return nil, errors.New("--alertmanager.url: accepted is http://HOST:PORT or https://HOST:PORT; credentials go into --alertmanager.http.config.file")
		}
		all = append(all, newAlertmanager(u, client))
	}
	return all, nil
}

func newAlertmanager(u *url.URL, client *http.Client) alertmanager {
	transport := openapi.NewWithClient(u.Host, u.Path+"/api/v2", []string{u.Scheme}, client)
	// It dumps requests, with their credentials, where the variable DEBUG is set.
	transport.Debug = false
	return alertmanager{u.Host, alert.New(transport, strfmt.Default)}
}

// List implements remediation.Source.
func (all alertmanagers) List(ctx context.Context) ([]remediation.Alert, error) {
	type answer struct {
		alerts []remediation.Alert
		err    error
	}
	answers := make(chan answer, len(all))
	for _, a := range all {
		go func() {
			list, err := a.list(ctx)
			answers <- answer{list, err}
		}()
	}
	var list []remediation.Alert
	var errs []error
	for range all {
		a := <-answers
		list = append(list, a.alerts...)
		if a.err != nil {
			errs = append(errs, a.err)
		}
	}
	if len(errs) == len(all) {
		return nil, errors.Join(errs...)
	}
	return list, nil
}

func (a alertmanager) list(ctx context.Context) ([]remediation.Alert, error) {
	yes := true
	params := alert.NewGetAlertsParamsWithContext(ctx).WithTimeout(askTimeout).
		WithActive(&yes).WithSilenced(&yes).WithInhibited(&yes).WithUnprocessed(&yes)
	resp, err := a.api.GetAlerts(params)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", a.host, err)
	}
	list := make([]remediation.Alert, 0, len(resp.Payload))
	for _, x := range resp.Payload {
		if x.StartsAt == nil || x.Status == nil || x.Status.State == nil {
			continue
		}
		list = append(list, remediation.Alert{
			Labels: x.Labels, Summary: x.Annotations["summary"], StartsAt: time.Time(*x.StartsAt), Suppressed: *x.Status.State == "suppressed",
		})
	}
	return list, nil
}
