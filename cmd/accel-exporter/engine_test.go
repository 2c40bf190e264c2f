package main

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/accel-exporter/accel-exporter/rules/engine"
)

// mine writes a rule file with an alert called Mine.
func mine(t *testing.T, expr string) string {
	t.Helper()
	return tempFile(t, "mine.yaml", "groups:\n  - name: mine\n    rules:\n      - alert: Mine\n        expr: "+expr+"\n")
}

// TestRulesCheck checks the outcome of "rules check" for a good and a bad file.
func TestRulesCheck(t *testing.T) {
	if out, stderr, err := outcome(t.Context(), "rules", "check", mine(t, "accel_source_up == 0")); err != nil || !strings.Contains(out, "1 alerts") {
		t.Errorf("check: %v\n%s%s", err, out, stderr)
	}
	bad := mine(t, "accel_source_up ===")
	if _, stderr, err := outcome(t.Context(), "rules", "check", bad); err == nil || !strings.Contains(stderr, bad+":5:") {
		t.Errorf("check of a mistake: %v\n%s", err, stderr)
	}
}

// TestRulesValues: a file of values changes the built-in rules that the node
// evaluates, a change of the file is taken over, and a mistake in it is not.
func TestRulesValues(t *testing.T) {
	file := tempFile(t, "rules.yml", "{alerts: {AccelSourceBlind: {for: 71m}}, labels: {team: gpu}}")
	n := start(t, "no-driver", nil, "--rules.values="+file, "--web.enable-lifecycle")
	n.until(`^accel_config_last_reload_successful 1$`)
	if code, body := n.get("/debug/rules"); code != http.StatusOK || !strings.Contains(body, `"for_seconds": 4260`) {
		t.Errorf("/debug/rules: %d %s", code, body)
	}
	writeFile(t, file, "alerts: {AccelSourceBlind: {for: soon}}")
	n.until(`^accel_config_last_reload_successful 0$`)
	writeFile(t, file, "alerts: {AccelSourceBlind: {for: 72m}}")
	n.until(`^accel_config_last_reload_successful 1$`)
	if _, body := n.get("/debug/rules"); !strings.Contains(body, `"for_seconds": 4320`) {
		t.Errorf("/debug/rules after the change: %s", body)
	}
}

// TestRulesRender checks the outcome of "rules render": one file, manifests with a
// label, a directory, and the error for a mistake.
func TestRulesRender(t *testing.T) {
	dir := t.TempDir()
	values := filepath.Join(dir, "my.yml")
	writeFile(t, values, "values: {idle_seconds: 77}\nalerts: {AcceleratorLost: {severity: info}}\n")
	render := func(args ...string) (stdout, stderr string, err error) {
		return outcome(t.Context(), append([]string{"rules", "render"}, args...)...)
	}
	out, stderr, err := render("--values=" + values)
	if err != nil || !strings.Contains(out, "> 77)") {
		t.Errorf("render: %v\n%s%s", err, out, stderr)
	}
	if set, err := engine.Parse(map[string][]byte{"all.yaml": []byte(out)}); err != nil || len(set.Groups) < 20 {
		t.Errorf("what is printed is no rule file: %v", err)
	}
	if manifests, stderr, err := render("--manifests", "--label=release=x"); err != nil || strings.Count(manifests, "    release: x\n") < 9 {
		t.Errorf("render --manifests: %v\n%s%s", err, manifests, stderr)
	}
	if _, stderr, err := render("--manifests", "--output="+dir); err != nil {
		t.Errorf("render --output: %v\n%s", err, stderr)
	}
	if data, err := os.ReadFile(filepath.Join(dir, "kustomization.yaml")); err != nil || !strings.Contains(string(data), "- devices.yaml\n") {
		t.Errorf("kustomization.yaml: %v\n%s", err, data)
	}
	for text, want := range map[string]string{
		"values: {}\nalert: {}":                                          `my\.yml:2: alert: unknown key \(did you mean alerts\?\)`,
		"values: {remediator_seen: 0s}":                                  `(?s)my\.yml: the rules that it makes are invalid:\nremediator\.yaml:\d+: .*duration must be greater than 0`,
		"alerts: {AcceleratorLost: {annotations: {summary: '{{ .X.Y'}}}": `my\.yml: the rules that it makes are invalid:\ndevices\.yaml:`,
	} {
		writeFile(t, values, text)
		if _, stderr, err := render("--values=" + values); err == nil || !regexp.MustCompile(want).MatchString(stderr) {
			t.Errorf("%s: %v\n%s", text, err, stderr)
		}
	}
}
