package repocheck

import (
	"strings"
	"testing"

	"github.com/accel-exporter/accel-exporter/internal/remediation"
)

// TestPolicy: the shipped policy is valid, each of its alerts is fired by a rule, and it
// has every page or names it with the reason why it has no rule.
func TestPolicy(t *testing.T) {
	const name = "deploy/remediator/policy.yml"
	text := read(t, name)
	var alerts []string
	for _, r := range loadRules(t) {
		alerts = append(alerts, r.Alert)
		if r.Labels["severity"] == "critical" && !strings.Contains(string(text), r.Alert) {
			t.Errorf("the page %s is not named", r.Alert)
		}
	}
	if _, err := remediation.ParsePolicy(name, text, alerts); err != nil {
		t.Error(err)
	}
}
