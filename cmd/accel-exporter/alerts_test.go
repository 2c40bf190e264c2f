package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/alertmanager/api/v2/models"
)

// fakeAlertmanager receives alerts by Alertmanager's API v2 and keeps the latest
// state of each.
type fakeAlertmanager struct {
	*httptest.Server
	mu     sync.Mutex
	latest map[string]*models.PostableAlert
}

func newAlertmanager(t *testing.T) *fakeAlertmanager {
	a := &fakeAlertmanager{latest: map[string]*models.PostableAlert{}}
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var list models.PostableAlerts
		if r.URL.Path != "/api/v2/alerts" || json.NewDecoder(r.Body).Decode(&list) != nil {
			http.Error(w, "not a list of alerts", http.StatusNotFound)
			return
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		for _, x := range list {
			a.latest[fmt.Sprint(x.Labels["alertname"], " ", x.Labels["device"])] = x
		}
	}))
	t.Cleanup(a.Close)
	return a
}

// about returns the latest state of an alert, nil if it was never sent.
func (a *fakeAlertmanager) about(alert, device string) *models.PostableAlert {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.latest[alert+" "+device]
}

// TestAlertOnFault checks that a fault sends an alert with the affected pod,
// without waiting for the next evaluation.
func TestAlertOnFault(t *testing.T) {
	t.Parallel()
	am := newAlertmanager(t)
	n := startPods(t, "h100-8", nil, "--alertmanager.url="+am.URL, often, "--rules.target-label=cluster=test", "--kubernetes.node=node1",
		// Only events trigger evaluations.
		"--rules.interval=1h")
	gpu := device(t, n.until(`^accel_device_up\{device="GPU-.*\} 1`, kernelLogRead, `^accel_podmap_state\{state="fresh"\} 1$`, `^accel_allocation_info\{.*pod="llm-0".*\} 1$`), "0")
	n.sim("inject", "xid", "79", "0")
	n.poll(func() bool { return am.about("AcceleratorFailed", gpu) != nil }, func() string { return "an alert AcceleratorFailed" })
	n.until(`^accel_alertmanager_alerts_sent_total\{.*\} [1-9]`)
	alert := am.about("AcceleratorFailed", gpu)
	labels := models.LabelSet{"alertname": "AcceleratorFailed", "severity": "critical", "cluster": "test", "node": "node1", "device": gpu}
	if diff := cmp.Diff(labels, alert.Labels); diff != "" {
		t.Errorf("labels: %s", diff)
	}
	if !strings.HasSuffix(alert.Annotations["runbook_url"], "/AcceleratorFailed.md") ||
		alert.Annotations["summary"] != "node1 GPU 0 failed (Xid 79): training/llm-0. Cordon, save the kernel log, reboot." {
		t.Errorf("annotations are %v", alert.Annotations)
	}
	for _, want := range []string{"0000:53:00.0", "index 0", "NVIDIA H100 80GB HBM3", "1650000000001", "xid_79", "training/llm-0", "reboot"} {
		if !strings.Contains(alert.Annotations["description"], want) {
			t.Errorf("description is %q, want %s in it", alert.Annotations["description"], want)
		}
	}
	if time.Time(alert.EndsAt).Before(time.Now()) {
		t.Errorf("the alert is already resolved: endsAt is %v", alert.EndsAt)
	}

	const found = "\ncritical AcceleratorFailed firing"
	for what, want := range map[string]string{
		"": found, "critical": found, "llm-0": found, "training/llm-0": found, gpu: found, gpu[:12]: found, "AcceleratorFailed": found, "firing": found,
		"info": "\nNo alert matches info. Other alerts: AcceleratorFailed", "AcceleratorFail": `no alert matches "AcceleratorFail"; alerts that fire or are pending: AcceleratorFailed`,
	} {
		args := []string{"alerts", "--url=" + n.url}
		if what != "" {
			args = append(args, what)
		}
		out, _, err := outcome(t.Context(), args...)
		if strings.HasPrefix(want, "no ") != (exitCode(err) == 1) || !strings.Contains("\n"+out+fmt.Sprint(err), want) {
			t.Errorf("%q: %v\n%s", args, err, out)
		}
	}
}

// TestRuleFiles checks that a reload applies valid rule files and rejects
// invalid ones completely.
func TestRuleFiles(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "mine.yaml")
	const good = `groups:
  - name: mine
    rules:
      - alert: %s
        expr: accel_source_up == 0
`
	writeFile(t, file, fmt.Sprintf(good, "First"))
	n := start(t, "no-driver", nil, "--rules.file="+filepath.Join(filepath.Dir(file), "*.yaml"), "--rules.interval=1s")
	firing := func(alert string) func() bool {
		return func() bool {
			_, body := n.get("/debug/rules")
			return strings.Contains(body, `"alertname": "`+alert+`"`)
		}
	}
	n.poll(firing("First"), func() string { return "the alert First" })
	writeFile(t, file, "groups:\n  - name: mine\n    rules:\n      - alert: Second\n        exprs: up\n")
	n.log.await(regexp.MustCompile(`Configuration rejected.*mine\.yaml.*line 5.*exprs`))
	n.until(`^accel_config_last_reload_successful 0$`)
	if !firing("First")() {
		t.Error("the previous rules are not evaluated any more")
	}
	writeFile(t, file, fmt.Sprintf(good, "Second"))
	n.poll(firing("Second"), func() string { return "the alert Second" })
	if firing("First")() {
		t.Error("the alert First still exists")
	}
}

// TestAlertmanagerSettings checks that a reload rejects invalid settings.
func TestAlertmanagerSettings(t *testing.T) {
	t.Parallel()
	am := newAlertmanager(t)
	file := tempFile(t, "accel.yml", "")
	n := start(t, "no-driver", nil, "--alertmanager.url="+am.URL, "--config.file="+file)
	writeFile(t, file, "alertmanager:\n  http: {tls: {ca_file: /nonexistent/ca.pem}}\n")
	n.log.await(regexp.MustCompile(`Configuration rejected.*/nonexistent/ca\.pem`))
	n.until(`^accel_config_last_reload_successful 0$`)
}
