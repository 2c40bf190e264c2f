package tools

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/promqltest"
)

// TestScrapeIntervals: at any scrape interval, and with a data source that is set to
// its default of 15 s, the variable finds the interval, bars count each event once,
// also after a restart of the exporter, and rates have values.
func TestScrapeIntervals(t *testing.T) {
	node := loadBoard(t, "accel-node")
	for _, interval := range []time.Duration{5 * time.Second, 15 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute} {
		t.Run(interval.String(), func(t *testing.T) {
			const length = 40 * time.Minute
			each := func(d time.Duration) int { return int(d / interval) }
			n := each(length / 4)
			series := fmt.Sprintf(`load %s
  accel_source_up{job="a",instance="n",source="nvidia"} 1x%d
  accel_device_info{job="a",instance="n",device="G",class="gpu",index="0"} 1x%[2]d
  accel_pcie_receive_bytes_total{job="a",instance="n",device="G"} 0+%[3]dx%[2]d
  accel_pcie_transmit_bytes_total{job="a",instance="n",device="G"} 0+%[3]dx%[2]d
  accel_gpu_xid_errors_total{job="a",instance="n",device="G",xid="79"} _x%[4]d 1x%[4]d 2x%[4]d 1x%[4]d
`, interval, each(length), 1000*int(interval.Seconds()), n)
			store := promqltest.LoadedStorage(t, series)
			end := time.Unix(0, 0).Add(length)
			values := map[string]string{"cluster": "", "instance": "n", "job": "a"}

			source := 15 * time.Second
			for _, c := range node.Templating.List {
				if c.Name != "scrape" {
					continue
				}
				expr := strings.TrimSuffix(strings.TrimPrefix(expanded(c.query(t), values), "query_result("), ")")
				found := vector(t, store, expr, end)
				if len(found) != 1 {
					t.Fatalf("%s: %v", expr, found)
				}
				values["scrape"] = found[0].Metric.Get("interval")
			}
			if want := max(interval, source); values["scrape"] != fmt.Sprintf("%.0fs", want.Seconds()) {
				t.Errorf("the variable is %q", values["scrape"])
			}
			ask := func(title string) promql.Matrix {
				t.Helper()
				p := node.panel(t, title)
				least := source
				if d, err := model.ParseDuration(expanded(p.Targets[0].Interval, values)); err == nil {
					least = time.Duration(d)
				}
				step := least
				if d, err := model.ParseDuration(p.Interval); err == nil {
					step = max(step, time.Duration(d))
				}
				values["__interval"] = step.String()
				values["__rate_interval"] = max(step+least, 4*least).String()
				expr := expanded(p.Targets[0].Expr, values)
				q, err := promqltest.NewTestEngine(t, false, 0, promqltest.DefaultMaxSamplesPerQuery).NewRangeQuery(t.Context(), store, nil, expr, time.Unix(0, 0), end, step)
				if err != nil {
					t.Fatal(err)
				}
				m, err := q.Exec(t.Context()).Matrix()
				if err != nil {
					t.Fatalf("%s: %v", expr, err)
				}
				return m
			}
			var xids float64
			for _, s := range ask("Xids") {
				for _, p := range s.Floats {
					xids += p.F
				}
			}
			if xids != 3 {
				t.Errorf("the bars count %v Xids, there were 3", xids)
			}
			rates := ask("PCIe traffic")
			if len(rates) != 1 || math.Abs(rates[0].Floats[len(rates[0].Floats)-1].F-2000) > 1 {
				t.Errorf("PCIe traffic: %v, want 2000 B/s", rates)
			}
		})
	}
}
