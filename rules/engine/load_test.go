package engine_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/accel-exporter/accel-exporter/rules/engine"
)

func TestParse(t *testing.T) {
	set := parse(t, `

groups:
- name: first
  interval: 1m
  query_offset: 30s
  limit: 5
  labels: {team: a, tier: 1}
  rules:
  - record: job:temp:max
    expr: max by (job) (temp)
    labels: {team: b}
  - alert: Hot
    expr: temp > 90
    for: 1h30m
    keep_firing_for: 5m
    labels: {team: b, severity: warning}
    annotations: {summary: "{{ $value }}"}
- name: second
`)
	if len(set.Groups) != 2 || len(set.Groups[0].Rules)+len(set.Groups[1].Rules) != 2 {
		t.Fatalf("%d groups: %+v", len(set.Groups), set.Groups)
	}
	g := set.Groups[0]
	if g.Name != "first" || g.File != "rules.yaml" || g.Interval != time.Minute || g.Limit != 5 || g.Cluster() {
		t.Errorf("%+v", g)
	}
	hot := g.Rules[1]
	if hot.Name() != "Hot" || hot.For != 90*time.Minute || hot.KeepFiringFor != 5*time.Minute || hot.Expr.String() != "temp > 90" {
		t.Errorf("%+v", hot)
	}
	if diff := cmp.Diff(map[string]string{"team": "b", "tier": "1", "severity": "warning"}, hot.Labels); diff != "" {
		t.Error(diff)
	}
}

// TestMistakes: a mistake that Prometheus' parser finds has its words and position, and so
// does one that Prometheus finds at evaluation only.
func TestMistakes(t *testing.T) {
	rule := func(text string) string { return "groups:\n- name: g\n  rules:\n  - " + text }
	for text, want := range map[string]string{
		"groups: 5":                                            "f.yaml: yaml: unmarshal errors:\n  line 1: cannot unmarshal !!int `5` into []rulefmt.RuleGroup",
		"groups: [{name: a}, {name: a}]":                       `groupname: "a" is repeated in the same file`,
		rule("alert: A\n    expr: up =\n"):                     `f.yaml:4: A: could not parse expression: 1:4: parse error: unexpected "="`,
		rule("alert: A\n    exprs: up"):                        "f.yaml: yaml: unmarshal errors:\n  line 5: field exprs not found in type rulefmt.Rule",
		rule("alert: A\n    expr: up[5m]"):                     "f.yaml:4: A: found an expression that yields a range vector; accepted is an instant vector or a scalar",
		rule("{alert: A, expr: up}\n  - {alert: A, expr: up}"): "f.yaml:5: A: found a second time, first at f.yaml:4; accepted is once",
		rule("alert: A\n    expr: up\n    annotations:\n      a: '{{ $labls.b }}'"): `f.yaml:4: A: annotation "a": template: __alert_A:1: undefined variable "$labls"`,
	} {
		_, err := engine.Parse(map[string][]byte{"f.yaml": []byte(text)})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\n got %v\nwant %s", text, err, want)
		}
	}
}

// TestAllMistakes: the error has all mistakes of all files.
func TestAllMistakes(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.yaml": "groups: [{name: a, rules: [{alert: A, expr: up}, {alert: B}]}]",
		"b.yaml": "groups: [{name: a, limit: x, rules: [{alert: A, expr: up, for: x}, {alert: A, expr: up}]}]",
		"c.yaml": "groups: [{name: a, rules: [{alert: C, expr: up}]}]",
		"d.yaml": "groups: [{name: a, rules: [{alert: C, expr: up}]}]",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, err := engine.Load(filepath.Join(dir, "*.yaml"))
	for _, name := range []string{"a.yaml", "b.yaml", "d.yaml"} {
		if err == nil || !strings.Contains(err.Error(), filepath.Join(dir, name)+":") {
			t.Errorf("%s is not named: %v", name, err)
		}
	}
	if err == nil || !strings.Contains(err.Error(), "first at "+filepath.Join(dir, "c.yaml")+":1") {
		t.Errorf("the error does not name the rule that is in both files: %v", err)
	}
	if _, err := engine.Load(filepath.Join(dir, "e.yaml")); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("missing file: %v", err)
	}
}

func TestCheck(t *testing.T) {
	dir := t.TempDir()
	good, bad := filepath.Join(dir, "good.yaml"), filepath.Join(dir, "bad.yaml")
	if err := os.WriteFile(good, []byte("groups: [{name: accel-cluster-a, rules: [{record: r, expr: up}]}, {name: b, rules: [{alert: A, expr: 'increase(up[60d]) > 0'}]}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(bad, []byte("groups: [{name: a, rules: [{alert: A, labels: {a: '{{ . '}}]}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	set, err := engine.Check(&out, good, bad)
	want := good + ": 2 groups, 1 alerts, 1 recorded series; 1 rules compare several nodes, which only Prometheus evaluates; 1 rules look back more than 192h0m0s, which only Prometheus evaluates\n"
	if out.String() != want {
		t.Errorf("got  %swant %s", out.String(), want)
	}
	// Both mistakes of a rule are reported, and the rules of the other file returned.
	if err == nil || strings.Count(err.Error(), bad+":1: A: ") != 2 || len(set.Groups) != 2 {
		t.Errorf("%v, %v", set, err)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"groups: [{name: a, rules: [{alert: A, expr: up, for: 1m, labels: {a: '{{ $value }}'}}]}]",
		"groups: &a [{name: a, rules: *a}]",
		"groups: [{name: a, labels: {<<: [{a: b}]}, rules: [{record: r, expr: 'sum(rate(x[5m] offset 1d)) @ end()'}]}]",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		set, err := engine.Parse(map[string][]byte{"f.yaml": data})
		if err != nil {
			if !strings.HasPrefix(err.Error(), "f.yaml:") {
				t.Errorf("does not begin with the file: %v", err)
			}
			return
		}
		for _, g := range set.Groups {
			for _, r := range g.Rules {
				if g.Name == "" || r.Name() == "" || r.Expr == nil {
					t.Errorf("accepted although incomplete: %+v", r)
				}
			}
		}
	})
}
