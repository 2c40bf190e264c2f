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
	p, err := remediation.ParsePolicy(name, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	alerts := map[string]bool{}
	for _, r := range loadRules(t) {
		alerts[r.Alert] = true
		if r.Labels["severity"] == "critical" && !strings.Contains(string(text), r.Alert) {
			t.Errorf("the page %s is not named", r.Alert)
		}
	}
	for i, r := range p.Rules {
		pattern := strings.TrimSuffix(strings.TrimPrefix(r.Match["alertname"].String(), "^(?:"), ")$")
		for alert := range strings.SplitSeq(pattern, "|") {
			if !alerts[alert] {
				t.Errorf("rules[%d]: no rule fires %q", i, alert)
			}
		}
	}
}
