package main

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// mine writes a rule file with an alert called Mine.
func mine(t *testing.T, expr string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "mine.yaml")
	if err := os.WriteFile(file, []byte("groups:\n  - name: mine\n    rules:\n      - alert: Mine\n        expr: "+expr+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestBadRule checks that a rule that reads too many samples fails alone: other
// rules send alerts, and the exporter serves metrics.
func TestBadRule(t *testing.T) {
	am := newAlertmanager(t)
	n := start(t, "no-driver", nil, "--alertmanager.url="+am.URL, "--rules.interval=1h",
		"--rules.file="+mine(t, "sum(accel_source_up) >= 0"),
		"--rules.file="+mine(t, "sum_over_time(vector(1)[1000h:1s]) > 0"))
	n.until(`^accel_rules_evaluation_failures_total\{.*\} [1-9]`, `^accel_rules_alerts\{state="firing"\} 1$`,
		`^accel_alertmanager_alerts_sent_total\{.*\} [1-9]`, `^accel_source_up\{`)
	code, body := n.get("/debug/rules")
	if code != http.StatusOK || !strings.Contains(body, "too many samples") {
		t.Errorf("/debug/rules: %d %s", code, body)
	}
}

// TestCheckAll checks that --config.check reports the mistakes of all sections
// of a file in line order.
func TestCheckAll(t *testing.T) {
	config := filepath.Join(t.TempDir(), "accel.yml")
	text := "alertmanager:\n  queue_size: 0\ncollect:\n  interval: soon\n"
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"--config.check"}, nil} {
		var stderr strings.Builder
		err := command(t.Context(), append(args, "--config.file="+config), io.Discard, &stderr)
		mistakes := regexp.MustCompile(`(?s)accel\.yml:2: alertmanager\.queue_size: .*accel\.yml:4: collect\.interval: `)
		if err == nil || !mistakes.MatchString(stderr.String()) {
			t.Errorf("%q: %v\n%s", args, err, &stderr)
		}
	}
}

// TestRulesCheck checks the outcome of "rules check" for a good and a bad file.
func TestRulesCheck(t *testing.T) {
	var out, stderr strings.Builder
	if err := command(t.Context(), []string{"rules", "check", mine(t, "accel_source_up == 0")}, &out, &stderr); err != nil || !strings.Contains(out.String(), "1 alerts") {
		t.Errorf("check: %v\n%s%s", err, &out, &stderr)
	}
	bad := mine(t, "accel_source_up ===")
	if err := command(t.Context(), []string{"rules", "check", bad}, &out, &stderr); err == nil || !strings.Contains(stderr.String(), bad+":5:") {
		t.Errorf("check of a mistake: %v\n%s", err, &stderr)
	}
}
