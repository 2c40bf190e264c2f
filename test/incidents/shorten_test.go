package incidents_test

import (
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/accel-exporter/accel-exporter/internal/judge/health"
	"github.com/accel-exporter/accel-exporter/test/incidents"
)

func TestShortenRules(t *testing.T) {
	rule := func(text string) string { return "groups:\n  - name: g\n    rules:\n      - " + text + "\n" }
	for _, tc := range []struct{ name, from, want string }{
		{"range", rule("expr: rate(a[10m]) > 0.5"), rule("expr: rate(a[10s]) > 0.5")},
		{"offset", rule("expr: a offset 1h > a offset -1h"), rule("expr: a offset 1m > a offset -1m")},
		{"subquery", rule("expr: max_over_time(rate(a[10m])[2h:30m] offset 1h)"), rule("expr: max_over_time(rate(a[10s])[2m:30s] offset 1m)")},
		{"gauge in seconds", rule("expr: a_seconds > bool 1800 and time() - max(b_timestamp_seconds) > 20"), rule("expr: a_seconds > bool 30 and time() - max(b_timestamp_seconds) > 1")},
		{"rates of seconds stay", rule("expr: rate(a_seconds_total[10m]) > 60 or a_seconds / b > 60"), rule("expr: rate(a_seconds_total[10s]) > 60 or a_seconds / b > 60")},
		{"for", rule("alert: A\n        expr: a\n        for: 10m\n        keep_firing_for: 5m"), rule("alert: A\n        expr: a\n        for: 10s\n        keep_firing_for: 5s")},
		{"interval", "groups:\n  - name: g\n    interval: 5m\n    rules: []\n", "groups:\n  - name: g\n    interval: 5s\n    rules: []\n"},
		{"texts stay", rule("alert: A\n        expr: a\n        annotations:\n          description: for 10m, rate(a[10m])"), rule("alert: A\n        expr: a\n        annotations:\n          description: for 10m, rate(a[10m])")},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := incidents.ShortenRules("r.yaml", []byte(tc.from), 60)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tc.want, string(got)); d != "" {
				t.Errorf("want -, got +:\n%s", d)
			}
		})
	}
}

func TestShortenCatalogue(t *testing.T) {
	const from = `
unknown: {text: unknown to the catalogue, severity: degraded, ends: 1h}
xid:
  - {code: 46, severity: failed, ends: reset}
  - {code: 94, severity: degraded, ends: 1h}
  - {code: 145, sub: rlw_remap_0x1, ends: 6h}
events:
  - {event: poison, ends: 1h}
conditions:
  - {reason: device_lost, severity: failed}
  - {reason: nvlink_down, for: 5m, severity: degraded}
  - {reason: pcie_fatal, test: grows, lasts: 1h}
  - {reason: pci_not_responding, for: 10s}
`
	const want = `conditions:
    - for: 5s
      reason: nvlink_down
    - lasts: 1m0s
      reason: pcie_fatal
    - for: 1s
      reason: pci_not_responding
events:
    - ends: 1m0s
      event: poison
unknown:
    ends: 1m0s
xid:
    - code: 94
      ends: 1m0s
    - code: 145
      ends: 6m0s
      sub: rlw_remap_0x1
`
	got, err := incidents.ShortenCatalogue("c.yaml", []byte(from), 60)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, string(got)); d != "" {
		t.Errorf("want -, got +:\n%s", d)
	}
}

// What is made of the built-in catalogue is taken by who reads it.
func TestShortenBuiltin(t *testing.T) {
	from, err := os.ReadFile("../../internal/judge/health/catalogue.yaml")
	if err != nil {
		t.Fatal(err)
	}
	short, err := incidents.ShortenCatalogue("catalogue.yaml", from, 60)
	if err != nil {
		t.Fatal(err)
	}
	c, err := health.Parse("short.yml", short)
	if err != nil {
		t.Fatal(err)
	}
	for _, condition := range c.Conditions() {
		if condition.For > 10*time.Second {
			t.Errorf("%s still takes %s", condition.Reason, condition.For)
		}
	}
}
