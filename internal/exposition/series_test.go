package exposition_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/exposition"
)

// flat returns a line for each metric of families, sorted. Histograms and
// summaries are one line.
func flat(families []*dto.MetricFamily) []string {
	var lines []string
	for _, f := range families {
		for _, m := range f.Metric {
			var labels []string
			for _, l := range m.Label {
				labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
			}
			value := fmt.Sprint(m.GetCounter().GetValue() + m.GetGauge().GetValue() + m.GetUntyped().GetValue())
			if m.Histogram != nil || m.Summary != nil {
				value = fmt.Sprint(m.GetHistogram(), m.GetSummary())
			}
			lines = append(lines, fmt.Sprintf("%s{%s} %s", f.GetName(), strings.Join(labels, ","), value))
		}
	}
	slices.Sort(lines)
	return lines
}

// contents returns a line for each series of p, as flat does.
func contents(t *testing.T, p *exposition.Page) []string {
	t.Helper()
	var text strings.Builder
	for _, f := range p.Families {
		if _, err := expfmt.MetricFamilyToText(&text, f); err != nil {
			t.Fatal(err)
		}
	}
	lines := flat(parse(t, text.String()))
	at := 0
	for name, labels := range p.Series() {
		var pairs []string
		for _, l := range labels {
			pairs = append(pairs, fmt.Sprintf("%s=%q", l.Name, l.Value))
		}
		lines = append(lines, fmt.Sprintf("%s{%s} %v", name, strings.Join(pairs, ","), p.Values[at]))
		at++
	}
	if at != len(p.Values) {
		t.Errorf("%d series for %d values", at, len(p.Values))
	}
	slices.Sort(lines)
	return lines
}

func parse(t *testing.T, text string) []*dto.MetricFamily {
	t.Helper()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return slices.Collect(maps.Values(families))
}

// TestRead compares the series of Read with the series of a scrape, histograms
// and the process's own families included, and checks when the series change.
func TestRead(t *testing.T) {
	snap := node(2, 3, 40)
	recovery := collector.NewDistribution(&collector.Metric{
		Name: "accel_device_recovery_seconds", Help: "Help.", Kind: collector.Histogram,
		Labels: []string{"region"}, Buckets: []float64{1, 10}, From: []string{"test"},
	}, "GPU-a", `x"y`)
	recovery.Observe(3)
	snap.Distributions = []collector.Distribution{recovery.Clone()}
	e := exposition.New(func() *collector.Snapshot { return snap }, ownRegistry(), exposition.Options{})
	var page exposition.Page
	for _, step := range []struct {
		name    string
		snap    *collector.Snapshot
		changed bool
	}{
		{"first", snap, true},
		{"other values", next(snap), false},
		{"fewer devices", node(1, 0, 40), true},
		{"nothing sampled", nil, true},
	} {
		t.Run(step.name, func(t *testing.T) {
			snap = step.snap
			changed, err := e.Read(&page)
			if err != nil || changed != step.changed {
				t.Errorf("changed %v, %v", changed, err)
			}
			_, _, text := get(t, e)
			if diff := cmp.Diff(flat(parse(t, text)), contents(t, &page)); diff != "" {
				t.Errorf("series (-scraped +read):\n%s", diff)
			}
		})
	}
}
