package alertmanager_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/accel-exporter/accel-exporter/rules/alertmanager"
)

// TestMetrics: counters are 0 from the start, for every reason. Timestamps are absent
// before the first event.
func TestMetrics(t *testing.T) {
	n := create(t, alertmanager.Options{Settings: settings("https://am.example/")})
	want := `request_failures_total client_error
request_failures_total credentials
request_failures_total network
request_failures_total redirect
request_failures_total server_error
request_failures_total throttled
request_failures_total timeout
request_failures_total unauthorized
alerts_dropped_total expired
alerts_dropped_total queue_full
alerts_dropped_total refused
alerts_dropped_total shutdown
alerts_dropped_total too_large
alerts_relabel_dropped_total
alerts_sent_total
queue_capacity
queue_length
request_duration_seconds`
	got := n.metricsOf("https://am.example")
	if got["queue_capacity"] != 10_000 {
		t.Errorf("%v", got)
	}
	names := slices.Sorted(maps.Keys(got))
	wanted := strings.Split(want, "\n")
	slices.Sort(wanted)
	if diff := cmp.Diff(wanted, names); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
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

// TestNoEndpoint: without endpoints, no alert is queued.
func TestNoEndpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := start(t, alertmanager.Options{Settings: alertmanager.DefaultSettings()})
		n.Send(firing("a"))
		synctest.Wait()
		if got := n.metrics(); len(got) != 1 {
			t.Errorf("%v", got)
		}
	})
}
