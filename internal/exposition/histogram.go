package exposition

import (
	"math"
	"slices"
	"strings"

	dto "github.com/prometheus/client_model/go"

	"github.com/accel-exporter/accel-exporter/collector"
)

// histograms returns the Distributions of a Snapshot as families, sorted by name,
// without the families that the settings drop.
func histograms(s *collector.Snapshot, set *Settings) []*dto.MetricFamily {
	var families []*dto.MetricFamily
	named := map[*collector.Metric]*dto.MetricFamily{}
	for i := range s.Distributions {
		d := &s.Distributions[i]
		m := d.Metric
		if m.Kind != collector.Histogram || len(d.Counts) != len(m.Buckets)+1 || len(d.Labels) != len(m.Labels) || set.drops(m) {
			continue
		}
		f := named[m]
		if f == nil {
			f = &dto.MetricFamily{Name: new(m.Name), Help: new(help(m)), Type: dto.MetricType_HISTOGRAM.Enum()}
			named[m], families = f, append(families, f)
		}
		f.Metric = append(f.Metric, histogramOf(d))
	}
	for _, f := range families {
		slices.SortFunc(f.Metric, func(a, b *dto.Metric) int { return compareLabels(a.Label, b.Label) })
	}
	slices.SortFunc(families, func(a, b *dto.MetricFamily) int { return strings.Compare(a.GetName(), b.GetName()) })
	return families
}

func histogramOf(d *collector.Distribution) *dto.Metric {
	h := &dto.Histogram{SampleSum: new(d.Sum)}
	var n uint64
	for i, c := range d.Counts {
		n += c
		bound := math.Inf(1)
		if i < len(d.Metric.Buckets) {
			bound = d.Metric.Buckets[i]
		}
		h.Bucket = append(h.Bucket, &dto.Bucket{UpperBound: new(bound), CumulativeCount: new(n)})
	}
	h.SampleCount = new(n)
	var labels []Label
	if d.Metric.Scope == collector.PerDevice {
		labels = append(labels, Label{"device", d.Device})
		if d.Parent != "" {
			labels = append(labels, Label{"parent", d.Parent})
		}
	}
	for i, name := range d.Metric.Labels {
		labels = append(labels, Label{name, d.Labels[i]})
	}
	m := &dto.Metric{Histogram: h}
	m.Label, _ = pairs(labels) // the table has valid names only
	return m
}
