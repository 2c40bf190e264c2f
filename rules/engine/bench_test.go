package engine_test

import (
	"bytes"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/accel-exporter/accel-exporter/rules/engine"
)

// golden returns a golden page of the exporter.
func golden(tb testing.TB, name string) []*dto.MetricFamily {
	tb.Helper()
	data, err := os.ReadFile("../../cmd/accel-exporter/testdata/golden/" + name + ".metrics")
	if err != nil {
		tb.Fatal(err)
	}
	return parsePage(tb, bytes.ReplaceAll(data, []byte(" VOLATILE"), []byte(" 1")))
}

func parsePage(tb testing.TB, data []byte) []*dto.MetricFamily {
	tb.Helper()
	p := expfmt.NewTextParser(model.LegacyValidation)
	families, err := p.TextToMetricFamilies(bytes.NewReader(data))
	if err != nil {
		tb.Fatal(err)
	}
	page := slices.Collect(maps.Values(families))
	slices.SortFunc(page, func(a, b *dto.MetricFamily) int { return strings.Compare(a.GetName(), b.GetName()) })
	return page
}

// move changes gauges slightly and increases one counter in three, as on a busy
// machine.
func move(page []*dto.MetricFamily, tick int) {
	for _, f := range page {
		for i, m := range f.Metric {
			if c := m.GetCounter(); c != nil && c.GetValue() > 1000 && i%3 == 0 {
				*c.Value += float64(1 + tick%7)
			}
			if g := m.GetGauge(); g != nil && g.GetValue() != 0 && g.GetValue() != 1 {
				*g.Value *= 1 + float64((tick+i)%5-2)/1000
			}
		}
	}
}

func newBenchEngine(b *testing.B, page []*dto.MetricFamily) *engine.Engine {
	b.Helper()
	e, err := engine.New(engine.Options{
		Page: prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) { return page, nil }), Rules: engine.Builtin(),
		Labels: map[string]string{"job": "accel-exporter", "instance": "node-1:9100"},
	})
	if err != nil {
		b.Fatal(err)
	}
	return e
}

// BenchmarkEval evaluates the built-in rules once every 15 s. Groups with longer
// intervals are evaluated only when they are due.
func BenchmarkEval(b *testing.B) {
	for _, name := range []string{"h100-8", "h100-mig-16x7"} {
		b.Run(name, func(b *testing.B) {
			page := golden(b, name)
			e := newBenchEngine(b, page)
			now := time.Unix(1_700_000_000, 0)
			tick := 0
			step := func() {
				move(page, tick)
				e.Eval(b.Context(), now, false)
				now = now.Add(15 * time.Second)
				tick++
			}
			for range 240 {
				step()
			}
			b.ReportAllocs()
			for b.Loop() {
				step()
			}
			b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N)/150, "%core")
		})
	}
}
