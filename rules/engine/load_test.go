package engine_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/accel-exporter/accel-exporter/internal/config/strict"
	"github.com/accel-exporter/accel-exporter/rules/engine"
)

func TestParse(t *testing.T) {
	set := parse(t, `

groups:
- name: first
  interval: 1m
  query_offset: 0
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

// TestMistakes: each mistake has its position, what was found and what is accepted.
func TestMistakes(t *testing.T) {
	rule := func(text string) string { return "groups:\n- name: g\n  rules:\n  - " + text }
	for text, want := range map[string]string{
		"groups: 5":                      `:1: groups: found the number 5; accepted is a list`,
		"groups:\n- 5":                   `:2: groups[0]: found the number 5; accepted is a mapping with the keys interval, labels, limit, name, query_offset, rules`,
		"":                               `:1: groups: found none; accepted is a list of groups, or [] for no rules`,
		"group: []":                      `:1: group: unknown key; accepted here: groups`,
		"groups: [{rules: []}]":          `:1: groups[0].name: found none; accepted is a name that is unique in the file`,
		"groups: [{name: a}, {name: a}]": `:1: groups[1].name: found "a" a second time, first on line 1; accepted is once in a file`,
		"groups: [{name: a, interval: 5 minutes}]":                                  `:1: groups[0].interval: found "5 minutes"; accepted is a duration such as 30s, 5m or 1h30m`,
		"groups: [{name: a, limit: -1}]":                                            `:1: groups[0].limit: found the number -1; accepted is a whole number, from 0 to 2147483647`,
		"a: [":                                                                      `:1: is not YAML: did not find expected node content`,
		"groups: []\n---\ngroups: []":                                               `:2: found a second document; accepted is one`,
		rule("expr: up"):                                                            `:4: groups[0].rules[0]: found neither record nor alert; accepted is one of record and alert`,
		rule("{alert: A, record: b, expr: up}"):                                     `:4: groups[0].rules[0]: found both record and alert; accepted is one of record and alert`,
		rule("alert: A"):                                                            `:4: groups[0].rules[0].expr: found none; accepted is an expression of PromQL that yields an instant vector or a scalar`,
		rule("alert: A\n    expr: up ="):                                            `:5: groups[0].rules[0].expr: found "up =": 1:4: unexpected "="; accepted is an expression of PromQL that yields an instant vector or a scalar`,
		rule("alert: A\n    expr: up[5m]"):                                          `:5: groups[0].rules[0].expr: found "up[5m]", which yields a range vector; accepted is an expression of PromQL that yields an instant vector or a scalar`,
		rule("alert: A\n    exprs: up"):                                             `:5: groups[0].rules[0].exprs: unknown key; accepted here: alert, annotations, expr, for, keep_firing_for, labels, record`,
		rule("alert: A\n    expr: up\n    for: 5"):                                  `:6: groups[0].rules[0].for: found "5"; accepted is a duration such as 30s, 5m or 1h30m`,
		rule("alert: A\n    expr: up\n    for: 1m\n    for: 2m"):                    `:7: groups[0].rules[0].for: found a second time, first on line 6; accepted is once`,
		rule("record: a-b\n    expr: up"):                                           `:4: groups[0].rules[0].record: found "a-b"; accepted is a metric name: letters, digits, _ and :, not beginning with a digit`,
		rule("record: a\n    expr: up\n    for: 1m"):                                `:6: groups[0].rules[0].for: found on a recording rule; accepted on alerts only`,
		rule("record: a\n    expr: up\n    annotations: {b: c}"):                    `:6: groups[0].rules[0].annotations: found on a recording rule; accepted on alerts only`,
		rule("alert: A\n    expr: up\n    labels: {a-b: c}"):                        `:6: groups[0].rules[0].labels.a-b: found the name "a-b"; accepted are letters, digits and _, not beginning with a digit`,
		rule("alert: A\n    expr: up\n    labels:\n      a: [b]"):                   `:7: groups[0].rules[0].labels.a: found a list; accepted is text`,
		rule("alert: A\n    expr: up\n    annotations:\n      a: '{{ $labls.b }}'"): `:7: groups[0].rules[0].annotations.a: found a template with a mistake: undefined variable "$labls"; accepted is Prometheus' template language`,
		rule("{alert: A, expr: up}\n  - {alert: A, expr: up}"):                      `:5: groups[0].rules[1]: found a second time, first at f.yaml:4; accepted is once`,
	} {
		_, err := engine.Parse(map[string][]byte{"f.yaml": []byte(text)})
		if mistakes, ok := errors.AsType[strict.Mistakes](err); !ok || len(mistakes) != 1 || err.Error() != "f.yaml"+want {
			t.Errorf("%s\n got %v\nwant f.yaml%s", text, err, want)
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
	mistakes, ok := errors.AsType[strict.Mistakes](err)
	if !ok || len(mistakes) != 4 {
		t.Errorf("%v", err)
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
	if err == nil || strings.Count(err.Error(), bad+":1: ") != 2 || len(set.Groups) != 2 {
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
		if mistakes, ok := errors.AsType[strict.Mistakes](err); err != nil && (!ok || len(mistakes) == 0) {
			t.Fatalf("not a list of mistakes: %v", err)
		}
		if err != nil {
			for line := range strings.SplitSeq(err.Error(), "\n") {
				if !strings.HasPrefix(line, "f.yaml:") {
					t.Errorf("does not begin with the position: %q", line)
				}
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
