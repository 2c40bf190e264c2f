package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/accel-exporter/accel-exporter/rules/render"
)

// TestRouting: routes, grouping, matchers and inhibition are in the
// AlertmanagerConfig, and what it could not say is an error.
func TestRouting(t *testing.T) {
	path := filepath.Join(t.TempDir(), "alertmanager.yml")
	convert := func(text string) (string, error) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		made, err := alertmanagerConfig(path)
		if err != nil {
			return "", err
		}
		data, err := render.Encode("", made)
		return string(data), err
	}
	got, err := convert(`
route: {receiver: a, group_by: [x], group_wait: 10s, routes: [{receiver: b, continue: true, matchers: ['severity =~ "p|q"', 'x != ""']}]}
inhibit_rules: [{source_matchers: [a = b], target_matchers: [c!=d], equal: [e]}]
receivers: [{name: a}, {name: b}]
`)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"groupWait: 10s", "groupBy:\n        - x", "continue: true", "matchType: =~\n          name: severity\n              value: p|q",
		"sourceMatch:\n        - matchType: =\n          name: a\n          value: b", "matchType: '!='\n          name: c\n          value: d", "- name: b",
	} {
		if !strings.Contains(strings.Join(strings.Fields(got), " "), strings.Join(strings.Fields(want), " ")) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	for text, want := range map[string]string{
		"time_intervals: []": "field time_intervals not found",
		"route: {receiver: a, matchers: ['severity of b']}": `found the matcher "severity of b"`,
	} {
		if _, err := convert(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
