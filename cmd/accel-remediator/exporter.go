package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/config"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/remediation"
)

// exporters ask the exporters of nodes, by their metrics.
type exporters struct {
	// addresses returns the addresses of the exporters of a node.
	addresses func(ctx context.Context, node string) ([]string, error)
	url       string // with {address}
	client    *http.Client
}

const (
	// proofTimeout bounds one answer of an exporter.
	proofTimeout = 5 * time.Second
	// maxPage bounds it in bytes.
	maxPage = 64 << 20
	// address is replaced by the address of the exporter.
	address = "{address}"
)

// newExporters returns the exporters behind a URL. clientFile has an HTTP client
// configuration of Prometheus; it may be empty.
func newExporters(text, clientFile string, addresses func(context.Context, string) ([]string, error)) (*exporters, error) {
	u, err := url.Parse(strings.ReplaceAll(text, address, "192.0.2.1"))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || !strings.Contains(text, "://"+address) {
		return nil, errors.New("--exporter.url: accepted is http://{address}:PORT/PATH or https://{address}:PORT/PATH; credentials go into --exporter.http.config.file")
	}
	client, err := newClient(clientFile, "exporter")
	if err != nil {
		return nil, err
	}
	client.Timeout = proofTimeout
	return &exporters{addresses, text, client}, nil
}

// newClient returns a client of Prometheus' configuration.
func newClient(file, name string) (*http.Client, error) {
	cfg := config.DefaultHTTPClientConfig
	if file != "" {
		loaded, _, err := config.LoadHTTPConfigFile(file)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		cfg = *loaded
	}
	cfg.FollowRedirects = false // a redirect would get the credentials
	return config.NewClientFromConfig(cfg, name)
}

// Prove implements remediation.Prover. Of several exporters on the node, such as during
// a roll-out, each has to answer, and the worst state of a device counts.
func (e *exporters) Prove(ctx context.Context, node string) (*remediation.Proof, error) {
	list, err := e.addresses(ctx, node)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, errors.New("no exporter runs on the node")
	}
	all := &remediation.Proof{Sources: map[string]string{}, Devices: map[string]string{}, Before: map[string]time.Time{}}
	for _, host := range list {
		if strings.Contains(host, ":") {
			host = "[" + host + "]"
		}
		page, err := e.page(ctx, strings.ReplaceAll(e.url, address, host))
		if err == nil {
			err = read(page, all)
		}
		if err != nil {
			return nil, fmt.Errorf("exporter %s: %w", host, err)
		}
	}
	return all, nil
}

// families are the families that a proof is made from.
var families = []string{
	collector.SourceUp.Name, collector.DeviceHealth.Name, collector.FaultsUnknown.Name, collector.DeviceBundle.Name,
	collector.ClockHertz.Name, collector.ClockMax.Name, collector.UtilizationRatio.Name, collector.PowerWatts.Name, collector.PowerLimit.Name,
}

// page returns the lines of these families: a page may have megabytes.
func (e *exporters) page(ctx context.Context, url string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "text/plain;version=0.0.4")
	resp, err := e.client.Do(req)
	if err != nil {
		if opErr := new(net.OpError); errors.As(err, &opErr) {
			err = opErr // without the URL, which the caller names
		}
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, errors.New(resp.Status)
	}
	var page bytes.Buffer
	body := &io.LimitedReader{R: resp.Body, N: maxPage}
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if name, _, _ := strings.Cut(strings.TrimPrefix(lines.Text(), "# TYPE "), " "); slices.ContainsFunc(families, func(f string) bool {
			return name == f || strings.HasPrefix(name, f+"{")
		}) {
			page.Write(lines.Bytes())
			page.WriteByte('\n')
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if body.N == 0 {
		return nil, fmt.Errorf("found a page of more than %d bytes", maxPage)
	}
	return page.Bytes(), nil
}

// read adds the page of one exporter to a proof.
func read(page []byte, to *remediation.Proof) error {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	found, err := parser.TextToMetricFamilies(bytes.NewReader(page))
	if err != nil {
		return err
	}
	sources := found[collector.SourceUp.Name]
	if sources == nil {
		return fmt.Errorf("the page has no %s", collector.SourceUp.Name)
	}
	for _, m := range sources.GetMetric() {
		labels := labelsOf(m)
		if m.GetGauge().GetValue() != 1 && labels["reason"] != "absent" {
			to.Sources[labels["source"]] = labels["reason"]
		}
	}
	for _, m := range found[collector.DeviceHealth.Name].GetMetric() {
		labels := labelsOf(m)
		if id := labels["device"]; m.GetGauge().GetValue() == 1 && (to.Devices[id] == "" || to.Devices[id] == "healthy") {
			to.Devices[id] = labels["state"]
		}
	}
	for _, m := range found[collector.DeviceBundle.Name].GetMetric() {
		labels := labelsOf(m)
		if to.Evidence == nil {
			to.Evidence = map[string]remediation.Evidence{}
		}
		to.Evidence[labels["device"]] = remediation.Evidence{State: labels["state"], Place: labels["location"] + ", SHA-256 " + labels["sha256"]}
	}
	for _, m := range found[collector.FaultsUnknown.Name].GetMetric() {
		id, before := labelsOf(m)["device"], time.UnixMilli(int64(m.GetGauge().GetValue()*1000))
		if before.After(to.Before[id]) {
			to.Before[id] = before
		}
	}
	clocks(found, to)
	return nil
}

// clocks adds the SM clocks of busy devices to a proof.
func clocks(found map[string]*dto.MetricFamily, to *remediation.Proof) {
	values := func(of *collector.Metric, label, value string) map[string]float64 {
		all := map[string]float64{}
		for _, m := range found[of.Name].GetMetric() {
			if labels := labelsOf(m); labels["parent"] == "" && labels[label] == value {
				all[labels["device"]] = m.GetGauge().GetValue()
			}
		}
		return all
	}
	highest, busy := values(collector.ClockMax, "clock", "sm"), values(collector.UtilizationRatio, "engine", "compute")
	watts, limit := values(collector.PowerWatts, "", ""), values(collector.PowerLimit, "limit", "enforced")
	for id, hertz := range values(collector.ClockHertz, "clock", "sm") {
		// Without the power it is unknown whether its limit explains a low clock.
		if power, measured := watts[id]; measured && highest[id] > 0 && busy[id] > 0.9 && limit[id] > 0 {
			if to.Clocks == nil {
				to.Clocks = map[string]remediation.Clock{}
			}
			to.Clocks[id] = remediation.Clock{Share: hertz / highest[id], Limited: power > 0.8*limit[id]}
		}
	}
}

func labelsOf(m *dto.Metric) map[string]string {
	labels := map[string]string{}
	for _, l := range m.GetLabel() {
		labels[l.GetName()] = l.GetValue()
	}
	return labels
}
