package engine_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/prometheus/common/expfmt"

	"github.com/accel-exporter/accel-exporter/rules/engine"
)

// TestReport: encoding the report as JSON and decoding it does not change it. As text
// it has the urgent alerts first, with their values and expressions.
func TestReport(t *testing.T) {
	w := newWorld(t, `
groups:
- name: accel-cluster-a
  rules: [{record: r, expr: temp}]
- name: g
  rules:
  - alert: Hot
    expr: temp > on (device) limit and on (device) rate(busy_seconds_total[5m]) > 0.1
    for: 2m
    labels: {severity: warning}
    annotations: {summary: 'hot {{ $labels.device }}'}
  - alert: Broken
    expr: temp * on () limit
  - alert: Nan
    expr: temp - limit
`)
	for i, busy := range []string{"0", "60", "120"} {
		w.set(`temp{device="a"} 95`, `temp{device="b"} NaN`, `limit{device="a"} 90`, `limit{device="b"} 90`, "# TYPE busy_seconds_total counter", `busy_seconds_total{device="a"} `+busy)
		w.at(time.Duration(i) * time.Minute)
	}
	report := w.Report()
	data, err := json.Marshal(report)
	if err != nil {
		t.Fatal(err)
	}
	var back engine.Report
	if err := json.Unmarshal(data, &back); err != nil {
		t.Fatal(err)
	}
	again, err := json.Marshal(back)
	if err != nil || string(again) != string(data) {
		t.Errorf("the JSON differs after decoding, %v:\n%s\n%s", err, data, again)
	}
	hot := back.Groups[1].Rules[0]
	if hot.State != engine.Pending || len(hot.Alerts) != 1 || hot.Alerts[0].Value != 95 {
		t.Fatalf("%+v", hot)
	}
	nan := back.Groups[1].Rules[2].Alerts
	if len(nan) != 2 || !math.IsNaN(float64(nan[1].Value)) {
		t.Errorf("NaN: %+v", nan)
	}
}

// TestMetrics: metrics of the engine.
func TestMetrics(t *testing.T) {
	w := newWorld(t, `
groups:
- name: accel-cluster-a
  rules: [{record: r, expr: temp}]
- name: g
  rules:
  - {alert: Hot, expr: temp > 90, annotations: {a: '{{ query "nothing" | first }}'}}
  - {alert: Pending, expr: temp > 90, for: 5m}
  - {record: broken, expr: temp * on () temp}
`)
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(w.Engine.Metrics()...)
	gathered(t, r)
	w.set(`temp{d="a"} 91`, `temp{d="b"} 91`)
	w.at(0)
	gathered(t, r)
	page := gathered(t, r)
	for _, line := range []string{
		`accel_rules_evaluation_failures_total{group="g"} 1`,
		`accel_rules_last_evaluation_timestamp_seconds 1.7673228e+09`,
		`accel_rules_limit_hits_total{limit="series"} 0`,
		`accel_rules_skipped{reason="cluster"} 1`,
		`accel_rules_skipped{reason="range"} 0`,
	} {
		if !strings.Contains(page, "\n"+line+"\n") {
			t.Errorf("missing: %s", line)
		}
	}
	if t.Failed() {
		t.Log(page)
	}
}

// TestOwnPage: rules can read the engine's own metrics.
func TestOwnPage(t *testing.T) {
	r := prometheus.NewPedanticRegistry()
	w := newWorld(t, group("- alert: Failing\n  expr: accel_rules_evaluation_failures_total > 0\n- record: broken\n  expr: up * on () {__name__=~\"up|accel_rules_skipped\"}"), func(o *engine.Options) {
		o.Page = r
	})
	r.MustRegister(w.Engine.Metrics()...)
	w.at(0)
	w.at(time.Minute)
	if diff := cmp.Diff([]string{"firing Failing group=g"}, w.alerts()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// gathered returns the page of a registry and lints its families.
func gathered(t *testing.T, g prometheus.Gatherer) string {
	t.Helper()
	families, err := g.Gather()
	if err != nil {
		t.Fatal(err)
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
	var b strings.Builder
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(&b, f); err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}
