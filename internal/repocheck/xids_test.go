package repocheck

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/accel-exporter/accel-exporter/internal/judge/health"
)

// TestHardwareXids: the Xids of the hardware are the same in the rules and in
// the total that the exporter counts.
func TestHardwareXids(t *testing.T) {
	var values struct {
		Names string `yaml:"hardware_xid_names"`
	}
	if err := yaml.Unmarshal(read(t, "rules/values.yml"), &values); err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`^xid_\(([\d|]+)\)$`).FindStringSubmatch(values.Names)
	if m == nil {
		t.Fatalf("hardware_xid_names is %q, want numbers, such as xid_(48|79)", values.Names)
	}
	rules := strings.Split(m[1], "|")
	var counted []string
	for _, e := range health.Builtin().Entries() {
		if e.Total == "hardware" && e.Sub == "" {
			counted = append(counted, strconv.Itoa(e.Code))
		}
	}
	slices.Sort(rules)
	slices.Sort(counted)
	if !slices.Equal(rules, counted) {
		t.Errorf("rules/values.yml has %v, the catalogue counts %v", rules, counted)
	}
}
