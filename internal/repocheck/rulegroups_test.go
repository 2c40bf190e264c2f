package repocheck

import (
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestRuleGroups: no group has more rules than Mimir accepts by default.
func TestRuleGroups(t *testing.T) {
	const limit = 20
	for _, name := range match(t, "rules/*.yaml") {
		var f struct {
			Groups []struct {
				Name  string
				Rules []alertRule
			}
		}
		if err := yaml.Unmarshal(read(t, name), &f); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, g := range f.Groups {
			if len(g.Rules) > limit {
				t.Errorf("%s: %s has %d rules, at most %d", name, g.Name, len(g.Rules), limit)
			}
		}
	}
}
