package differential

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	dto "github.com/prometheus/client_model/go"
)

// TestThinned: of a series that changes at each step for longer than the engine
// keeps every value, the latest 256 are as Prometheus has them. Further back
// the engine keeps of each 200th of the range the first, the last, the largest
// and the smallest value, so what it finds is off by no more than what happens
// in such a part: at the beginning of the range for what is made of these
// values, in each part for an average.
func TestThinned(t *testing.T) {
	const (
		step  = 15 * time.Second
		steps = 4000
		part  = 12 * time.Hour / 200
	)
	functions := []string{"increase", "rate", "delta", "changes", "resets", "max_over_time", "min_over_time", "avg_over_time", "sum_over_time", "count_over_time", "stddev_over_time"}
	var text strings.Builder
	text.WriteString("groups:\n- name: g\n  interval: 20m\n  rules:\n")
	for _, f := range functions {
		for _, family := range []string{"errors_total", "temp"} {
			for _, span := range []string{"1h", "12h"} {
				fmt.Fprintf(&text, "  - {record: '%s_%s_%s', expr: '%s(%s[%s])'}\n", f, family, span, f, family, span)
			}
		}
	}
	p := newPair(t, options{rules: text.String(), interval: step})
	r := random(*seed)
	counter, gauge := 0.0, 50.0
	var most, grown [2]float64 // of the counter and the gauge: in one part, in this
	counterKind, gaugeKind := dto.MetricType_COUNTER, dto.MetricType_GAUGE
	start := time.Unix(1_800_000_000, 0).UTC()
	compared := 0
	for i := 1; i < steps; i++ {
		at := start.Add(time.Duration(i) * step)
		if i%int(part/step+1) == 0 {
			grown = [2]float64{}
		}
		if i%700 == 699 {
			counter = 0
		}
		more := float64(1 + r.IntN(5))
		turn := float64(r.IntN(9) - 4)
		counter, gauge = counter+more, gauge+turn
		if turn == 0 {
			gauge += 0.5
		}
		grown[0], grown[1] = grown[0]+more, grown[1]+math.Abs(turn)+0.5
		most = [2]float64{max(most[0], grown[0]), max(most[1], grown[1])}
		p.feed(at, []*dto.MetricFamily{
			{Name: proto.String("errors_total"), Type: &counterKind, Metric: []*dto.Metric{{Counter: &dto.Counter{Value: proto.Float64(counter)}}}},
			{Name: proto.String("temp"), Type: &gaugeKind, Metric: []*dto.Metric{{Gauge: &dto.Gauge{Value: proto.Float64(gauge)}}}},
		}, true)
		if !p.theirs.groups[0].last.Equal(at) {
			continue
		}
		for _, f := range functions {
			exact := []string{f + "_errors_total_1h", f + "_temp_1h"}
			if f == "count_over_time" {
				exact = append(exact, f+"_errors_total_12h", f+"_temp_12h")
			}
			for _, name := range exact {
				if d := difference(p.texts(p.ours.Query, name, at), p.texts(p.theirs.query, name, at)); len(d) > 0 {
					t.Errorf("after %v: %s", at.Sub(start), d)
				}
			}
		}
		for n, family := range []string{"errors_total", "temp"} {
			for f, within := range map[string]float64{
				"increase": most[n], "rate": most[n] / (12 * 3600), "delta": most[n],
				"max_over_time": most[n], "min_over_time": most[n], "avg_over_time": most[n], "stddev_over_time": most[n],
			} {
				if family == "temp" && (f == "increase" || f == "rate") {
					continue // of a gauge that falls all the time
				}
				name := f + "_" + family + "_12h"
				ours, theirs := p.values(name, at)
				if math.IsNaN(ours) && math.IsNaN(theirs) {
					continue
				}
				if ours != theirs {
					compared++
				}
				if !(math.Abs(ours-theirs) <= 1.05*within) {
					t.Errorf("after %v: %s is %v, in Prometheus %v; within %v was promised", at.Sub(start), name, ours, theirs, within)
				}
			}
		}
	}
	if compared == 0 {
		t.Error("nothing was thinned")
	}
	t.Logf("%d values differ", compared)
}
