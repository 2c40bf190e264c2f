package engine_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/accel-exporter/accel-exporter/rules/engine"
)

const testedRules = `
groups:
- name: second
  rules:
  - {alert: Hot, expr: 'twice > 180', for: 2m, labels: {severity: warning}, annotations: {summary: '{{ $labels.device }} at {{ $externalLabels.site }}'}}
- name: first
  interval: 1m
  rules:
  - {record: twice, expr: temp * 2}
`

// TestTest: a test passes, or says what is otherwise.
func TestTest(t *testing.T) {
	const head = "rule_files: [r.yaml]\nevaluation_interval: 1m\ngroup_eval_order: [first, second]\n"
	const series = `
  input_series:
  - {series: 'temp{device="a"}', values: '80 91+1x3 _ stale'}
`
	for name, c := range map[string]struct{ text, want string }{
		"good": {head + "tests:\n- interval: 1m\n  external_labels: {site: s}" + series + `
  alert_rule_test:
  - {eval_time: 2m, alertname: Hot}
  - {eval_time: 3m, alertname: Hot, exp_alerts: [{exp_labels: {severity: warning, device: a}, exp_annotations: {summary: a at s}}]}
  - {eval_time: 9m, alertname: Hot}
  promql_expr_test:
  - {expr: twice, eval_time: 2m, exp_samples: [{labels: 'twice{device="a"}', value: 184}]}
  - {expr: 'count(temp) or vector(0)', eval_time: 6m, exp_samples: [{labels: '{}', value: 0}]}
  - {expr: time(), eval_time: 1m, exp_samples: [{value: 60}]}
  - {expr: 'sum_over_time(temp[10m:])', eval_time: 5m, exp_samples: [{labels: '{device="a"}', value: 544}]}
`, ""},
		"another time": {head + "tests:\n- interval: 1m\n  start_timestamp: 2026-01-01T00:00:00Z" + series + `
  promql_expr_test:
  - {expr: time(), eval_time: 1m, exp_samples: [{value: 1767225660}]}
  - {expr: temp, eval_time: 1m, exp_samples: [{labels: 'temp{device="a"}', value: 91}]}
`, ""},
		"an alert is missing": {
			head + "tests:\n- name: mine\n  interval: 1m" + series + "  alert_rule_test:\n  - {eval_time: 1m, alertname: Hot, exp_alerts: [{}]}\n",
			"mine: alert Hot at 1m:\n    expected {alertname=\"Hot\"} annotations {}",
		},
		"an alert too many": {
			head + "tests:\n- interval: 1m" + series + "  alert_rule_test:\n  - {eval_time: 3m, alertname: Hot}\n",
			"test 1: alert Hot at 3m:\n    found    {alertname=\"Hot\", device=\"a\", severity=\"warning\"} annotations {summary=\"a at \"}",
		},
		"another value": {
			head + "tests:\n- interval: 1m" + series + "  promql_expr_test:\n  - {expr: twice, eval_time: 1m, exp_samples: [{labels: 'twice{device=\"a\"}', value: 1}]}\n",
			"expr \"twice\" at 1m: \n    expected {__name__=\"twice\", device=\"a\"} 1\n    found    {__name__=\"twice\", device=\"a\"} 182",
		},
		"an unknown field":   {head + "test: []", "field test not found"},
		"a broken series":    {head + "tests: [{input_series: [{series: 'a{', values: 1}]}]", `series "a{": `},
		"too many samples":   {head + "tests: [{input_series: [{series: a, values: 1x999999999}]}]", "found more than 1000000 samples"},
		"too many steps":     {head + "tests: [{promql_expr_test: [{expr: a, eval_time: 100y}]}]", "accepted are at most 1000000"},
		"a native histogram": {head + "tests: [{input_series: [{series: a, values: '{{schema:1 sum:1 count:1}}'}]}]", "found a native histogram"},
		"no such rules":      {"rule_files: [none.yaml]\ntests: []", "rule_files: "},
		"a rule that fails":  {head + "tests: [{input_series: [{series: 'temp{a=\"1\"}', values: 1}, {series: 'temp{b=\"1\"}', values: 1}], promql_expr_test: [{expr: 'temp * on () temp', eval_time: 0}]}]", "many-to-many"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "t.yaml")
			for name, text := range map[string]string{"r.yaml": testedRules, "t.yaml": c.text} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			var out strings.Builder
			err := engine.Test(t.Context(), &out, path)
			if c.want == "" && (err != nil || out.String() != path+": 1 tests passed\n") {
				t.Errorf("%v\n%s", err, out.String())
			}
			if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || out.String() != path+": failed\n") {
				t.Errorf("got %v\nwant …%s", err, c.want)
			}
		})
	}
}

// FuzzTest: whatever stands in a file of tests, the answer comes, within
// bounds.
func FuzzTest(f *testing.F) {
	f.Add("temp{a=\"b\"}", "1+1x5 _ stale", "sum(temp)", "5m")
	f.Add("temp", "{{schema:1}}x3", "temp[5m]", "1h")
	f.Add("temp", "1 2 3", "temp", "90y")
	dir := f.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "r.yaml"), []byte(testedRules), 0o600); err != nil {
		f.Fatal(err)
	}
	path := filepath.Join(dir, "t.yaml")
	f.Fuzz(func(t *testing.T, series, values, expr, at string) {
		quote := func(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
		text := "rule_files: [r.yaml]\ntests: [{input_series: [{series: " + quote(series) + ", values: " + quote(values) + "}], promql_expr_test: [{expr: " + quote(expr) + ", eval_time: " + quote(at) + "}]}]"
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var out strings.Builder
		err := engine.Test(ctx, &out, path)
		if passed := strings.HasSuffix(out.String(), ": 1 tests passed\n"); passed != (err == nil) {
			t.Errorf("%v, and %q", err, out.String())
		}
	})
}
