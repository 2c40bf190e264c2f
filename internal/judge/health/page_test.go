package health_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/judge/health"
)

const page = "../../../docs/health.md"

func readPage(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestPageExample: the example of an override is valid and has the described effect.
func TestPageExample(t *testing.T) {
	m := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindStringSubmatch(readPage(t))
	if m == nil {
		t.Fatal("no example")
	}
	c, err := health.Parse("example", []byte(m[1]))
	if err != nil {
		t.Fatal(err)
	}
	if got := judged(c, news(xid(31), xid(777)), set(collector.ThrottleActive, 1, "sw_thermal")); got != "degraded inspect xid_31 slow_clock" {
		t.Error(got)
	}
}

// TestPageActions: the page lists every action in ascending order.
func TestPageActions(t *testing.T) {
	s := snapshot(start, nil, gpu(start))
	health.New(health.Builtin(), health.Options{}).Judge(s)
	_, rest, _ := strings.Cut(readPage(t), "## Actions")
	for _, r := range s.Devices[0].Readings {
		if r.Metric != collector.DeviceAction {
			continue
		}
		var found bool
		if _, rest, found = strings.Cut(rest, "\n| `"+r.Labels[0]+"` |"); !found {
			t.Errorf("action %s is missing or not in order", r.Labels[0])
		}
	}
}
