package main

import (
	"strings"
	"testing"
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
	bad, unknown := mine(t, "accel_source_up ==="), mine(t, "accel_source_upp == 0")
	if _, stderr, err := outcome(t.Context(), "rules", "check", bad, unknown); err == nil || !strings.Contains(stderr, bad+":5:") || !strings.Contains(stderr, "accel_source_upp; did you mean accel_source_up?") {
		t.Errorf("check of a mistake: %v\n%s", err, stderr)
	}
}
