package repocheck

import (
	"strings"
	"testing"

	"github.com/accel-exporter/accel-exporter/internal/remediation"
)

// TestPolicy: the shipped policy is valid, and each of its alerts is fired by a
// rule.
func TestPolicy(t *testing.T) {
	const name = "deploy/remediator/policy.yml"
	p, err := remediation.ParsePolicy(name, []byte(read(t, name)))
	if err != nil {
		t.Fatal(err)
	}
	alerts := map[string]bool{}
	for _, r := range loadRules(t) {
		alerts[r.Alert] = true
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
