package main

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestAlertsCommand checks that a fault raises an alert without waiting for the next
// evaluation, and how "alerts" selects alerts.
func TestAlertsCommand(t *testing.T) {
	t.Parallel()
	n := startPods(t, scenario, nil, often, "--rules.builtin", "--rules.target-label=cluster=c1", "--kubernetes.node=node1",
		// Only events trigger evaluations.
		"--rules.interval=1h")
	gpu := device(t, n.until(`^accel_device_up\{device="GPU-.*\} 1`, kernelLogRead, `^accel_podmap_state\{state="fresh"\} 1$`, `^accel_allocation_info\{.*pod="llm-0".*\} 1$`), "0")
	n.sim("inject", "xid", "79", "0")
	listed := func(words ...string) (string, error) {
		out, _, err := outcome(t.Context(), append([]string{"alerts", "--url=" + n.url}, words...)...)
		return "\n" + out + fmt.Sprint(err), err
	}
	const found = "\ncritical AcceleratorFailed firing"
	n.poll(func() bool { out, _ := listed(); return strings.Contains(out, found) }, func() string { return "an alert AcceleratorFailed" })
	if out, _ := listed(); !strings.Contains(out, "node1 GPU 0 failed (Xid 79): training/llm-0. Cordon, save the kernel log, reboot.") {
		t.Error(out)
	}
	for word, want := range map[string]string{
		"critical": found, "llm-0": found, "training/llm-0": found, gpu: found, gpu[:12]: found, "AcceleratorFailed": found, "c1": found, "firing": found,
		"info": "\nNo alert matches info. Other alerts: AcceleratorFailed", "AcceleratorFail": `no alert matches "AcceleratorFail"; alerts that fire or are pending: AcceleratorFailed`,
	} {
		if out, err := listed(word); strings.HasPrefix(want, "no ") != (exitCode(err) == 1) || !strings.Contains(out, want) {
			t.Errorf("%q: %v\n%s", word, err, out)
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
	n.log.await(regexp.MustCompile(`Configuration rejected.*mine\.yaml:5:.*exprs`))
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
	file := tempFile(t, "accel.yml", "")
	n := start(t, "no-driver", nil, "--alertmanager.url=http://127.0.0.1:1", "--config.file="+file)
	writeFile(t, file, "alertmanager:\n  http: {tls: {ca_file: /nonexistent/ca.pem}}\n")
	n.log.await(regexp.MustCompile(`Configuration rejected.*/nonexistent/ca\.pem`))
	n.until(`^accel_config_last_reload_successful 0$`)
}
