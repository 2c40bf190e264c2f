package incidents_test

import (
	"strings"
	"testing"

	"github.com/accel-exporter/accel-exporter/test/incidents"
)

// Every mistake is reported with its line.
func TestMistakes(t *testing.T) {
	const head = "what: It breaks.\nscenario: h100-8\nlasts: 30s\n"
	for _, tc := range []struct{ name, file, want string }{
		{"empty", "", "i.yaml:1: found no what"},
		{"series that nobody scrapes", head + "prometheus: alone\nkube_state_metrics: a 1\n", "i.yaml:5: kube_state_metrics: found series that no Prometheus scrapes"},
		{"unknown key", head + "alerts: []\n", "i.yaml:4: alerts: unknown key"},
		{"key twice", head + "lasts: 40s\n", "i.yaml:4: lasts: found a second time, first on line 3"},
		{"no action", head + "timeline:\n  - at: 3s\n", "i.yaml:5: timeline[0]: found 0 actions"},
		{"two actions", head + "timeline:\n  - {at: 3s, inject: lost 2, clear: all}\n", "i.yaml:5: timeline[0]: found 2 actions"},
		{"step after the end", head + "timeline:\n  - {at: 3s, clear: all}\n  - {at: 30s, clear: all}\n", "i.yaml:6: timeline[1].at: found 30s; accepted is a time from 3s"},
		{"alert without a name", head + "expect:\n  - {by: 3s}\n", "i.yaml:5: expect[0]: found no alert"},
		{"alert before its cause", head + "expect:\n  - {alert: A, since: 9s, by: 8s}\n", "i.yaml:5: expect[0].by: found 8s; accepted is a time after 9s"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := incidents.Parse("i.yaml", []byte(tc.file))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("found %v; want %s", err, tc.want)
			}
		})
	}
}
