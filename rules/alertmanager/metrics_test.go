package alertmanager_test

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/accel-exporter/accel-exporter/rules/alertmanager"
)

// TestMetrics: counters are 0 from the start, for every reason. Timestamps are absent
// before the first event.
func TestMetrics(t *testing.T) {
	n := create(t, alertmanager.Options{Settings: settings("https://am.example/")})
	got := n.metricsOf("https://am.example")
	if len(got) != 16 {
		t.Errorf("%d series: %v", len(got), got)
	}
	for _, name := range []string{"alerts_sent_total", "alerts_dropped_total queue_full", "request_failures_total timeout"} {
		if v, found := got[name]; !found || v != 0 {
			t.Errorf("%s: %v, %v", name, v, found)
		}
	}
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(n)
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil || len(problems) > 0 {
		t.Error(problems, err)
	}
}
