package main

import (
	"strings"
	"testing"
)

// TestStatusPage: the page shows devices and settings of a running exporter, and a
// flag turns it off.
func TestStatusPage(t *testing.T) {
	t.Parallel()
	n := start(t, "t4", nil, "--rules.target-label=job=gpus")
	n.until(`^accel_device_up\{device="GPU-.*\} 1`)
	code, page := n.get("/")
	for _, want := range []string{"Tesla T4", "--rules.target-label", "forget_after: 24h0m0s", "2 devices: "} {
		if code != 200 || !strings.Contains(page, want) {
			t.Errorf("%d: %q is not on the page", code, want)
		}
	}
	off := startExporter(t, "--no-web.status-page")
	if _, page := off.get("/"); !strings.Contains(page, "/debug/state") || strings.Contains(page, "status.js") {
		t.Errorf("turned off, / is %s", page)
	}
	if code, _ := off.get("/device?id=x"); code != 404 {
		t.Errorf("turned off, the page of a device has status %d", code)
	}
}

// TestMasked: neither flags nor configuration on the page have secrets.
func TestMasked(t *testing.T) {
	for _, c := range []struct{ name, value, want string }{
		{"otlp.endpoint", "https://user:hunter2@collector:4318/x", "https://***@collector:4318/x"},
		{"alertmanager.url", "http://a:9093,http://user:p%40ss@b:9093", "http://a:9093,http://***@b:9093"},
		{"password", "hunter2", "***"},
		{"api_key", "hunter2", "***"},
		{"bearer-token", "hunter2", "***"},
		{"credentials_file", "/run/secrets/token", "/run/secrets/token"},
		{"kubernetes.token-file", "/run/token", "/run/token"},
		{"password", "", ""},
		{"web.listen-address", ":19400", ":19400"},
	} {
		if got := masked(c.name, c.value); got != c.want {
			t.Errorf("%s=%s: %q, want %q", c.name, c.value, got, c.want)
		}
	}
}

// TestConfigText: the configuration on the page is that of the file, with defaults.
func TestConfigText(t *testing.T) {
	f, err := parseFlags(nil, &strings.Builder{}, &strings.Builder{})
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := parseConfig(f, []byte(`metrics: {drop: [accel_pcie_.*], max_series: 2000}
sources: {dcgm: {fields: [DCGM_FI_DEV_GPU_TEMP]}}
alertmanager:
  http: {basic_auth: {username: op, password_file: /run/password}}
  endpoints: [{url: "https://alertmanager:9093"}]
  alert_relabel_configs: [{source_labels: [x], regex: a+, action: drop}]
`))
	if err != nil {
		t.Fatal(err)
	}
	text := configText(cfg.Config)
	for _, want := range []string{
		"- accel_pcie_.*", "max_series: 2000", "- DCGM_FI_DEV_GPU_TEMP", "password_file: /run/password", "url: https://alertmanager:9093", "regex: a+", "forget_after: 24h0m0s",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
}
