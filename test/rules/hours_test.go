package differential

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	dto "github.com/prometheus/client_model/go"
)

// TestHours: functions over hours, of series that change at each step, rarely, and
// with resets.
func TestHours(t *testing.T) {
	var text strings.Builder
	text.WriteString("groups:\n- name: g\n  interval: 1h\n  rules:\n")
	for _, f := range []string{"increase", "rate", "delta", "changes", "resets", "max_over_time", "min_over_time", "avg_over_time", "sum_over_time", "count_over_time", "stddev_over_time"} {
		for _, family := range []string{"busy_total", "rare_total"} {
			fmt.Fprintf(&text, "  - {record: '%s_%s', expr: '%s(%s[12h])'}\n", f, family, f, family)
		}
	}
	p := newPair(t, options{rules: text.String(), interval: time.Minute})
	r := random(*seed)
	busy, rare := 0.0, 0.0
	for i := range 20 * 60 {
		if busy += float64(1 + r.IntN(5)); chance(r, 1) {
			busy = 0
		}
		if chance(r, 1) {
			rare++
		}
		family := func(name string, v float64) *dto.MetricFamily {
			return &dto.MetricFamily{Name: proto.String(name), Type: dto.MetricType_COUNTER.Enum(), Metric: []*dto.Metric{{Counter: &dto.Counter{Value: proto.Float64(v)}}}}
		}
		p.step(time.Unix(1_800_000_000, 0).UTC().Add(time.Duration(i)*time.Minute), []*dto.MetricFamily{family("busy_total", busy), family("rare_total", rare)}, true)
	}
}
