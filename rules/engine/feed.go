package engine

import (
	"math"
	"slices"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
)

// feed puts the page into the ring as a scrape with honor_labels does: target
// labels apply to every series without such a label, and series that are no
// longer on the page end.
type feed struct {
	target []labels.Label
	// live are the series of the previous page, next the series of this page.
	live, next []*series
	builder    *labels.Builder
}

func newFeed(target map[string]string) *feed {
	return &feed{target: sortedLabels(target), builder: labels.NewBuilder(labels.EmptyLabels())}
}

// take adds the page at the latest tick of the ring. A target that is not up
// ends all its series.
func (f *feed) take(r *ring, page []*dto.MetricFamily, up bool) {
	for _, family := range page {
		f.family(r, family)
	}
	b := f.base()
	b.Set(model.MetricNameLabel, "up")
	f.add(r, r.get(b.Labels(), false), map[bool]float64{true: 1}[up])
	for _, s := range f.live {
		r.end(s)
	}
	clear(f.live)
	f.live, f.next = f.next, f.live[:0]
}

func (f *feed) add(r *ring, s *series, v float64) {
	if s == nil || r.has(s) {
		return
	}
	if isStale(v) {
		v = math.NaN() // only the engine writes staleness markers
	}
	r.append(s, v)
	f.next = append(f.next, s)
}

// base returns the builder with the target labels. An empty label on the page
// removes one, as in a scrape.
func (f *feed) base() *labels.Builder {
	f.builder.Reset(labels.EmptyLabels())
	for _, l := range f.target {
		f.builder.Set(l.Name, l.Value)
	}
	return f.builder
}

// family adds the samples of a family that some rule reads.
func (f *feed) family(r *ring, family *dto.MetricFamily) {
	if !slices.ContainsFunc(suffixes(family.GetType()), func(suffix string) bool {
		_, read := r.needs.of(family.GetName() + suffix)
		return read
	}) {
		return
	}
	for _, m := range family.Metric {
		f.metric(r, family, m)
	}
}

// suffixes are the suffixes of the names of a family's series.
func suffixes(t dto.MetricType) []string {
	switch t {
	case dto.MetricType_HISTOGRAM:
		return []string{"_bucket", "_sum", "_count"}
	case dto.MetricType_SUMMARY:
		return []string{"", "_sum", "_count"}
	}
	return []string{""}
}

// metric adds the samples of one metric.
func (f *feed) metric(r *ring, family *dto.MetricFamily, m *dto.Metric) {
	add := func(v float64, suffix string, more ...labels.Label) {
		b := f.base()
		for _, p := range m.GetLabel() {
			b.Set(p.GetName(), p.GetValue())
		}
		for _, l := range more {
			b.Set(l.Name, l.Value)
		}
		b.Set(model.MetricNameLabel, family.GetName()+suffix)
		f.add(r, r.get(b.Labels(), false), v)
	}
	at := func(label string, v float64) labels.Label {
		return labels.Label{Name: label, Value: labels.FormatOpenMetricsFloat(v)}
	}
	switch family.GetType() {
	case dto.MetricType_HISTOGRAM:
		h := m.GetHistogram()
		for _, b := range h.GetBucket() {
			if !math.IsInf(b.GetUpperBound(), 1) { // it is the count
				add(float64(b.GetCumulativeCount()), "_bucket", at(model.BucketLabel, b.GetUpperBound()))
			}
		}
		count := float64(h.GetSampleCount())
		add(count, "_bucket", at(model.BucketLabel, math.Inf(1)))
		add(h.GetSampleSum(), "_sum")
		add(count, "_count")
	case dto.MetricType_SUMMARY:
		s := m.GetSummary()
		for _, q := range s.GetQuantile() {
			add(q.GetValue(), "", at(model.QuantileLabel, q.GetQuantile()))
		}
		add(s.GetSampleSum(), "_sum")
		add(float64(s.GetSampleCount()), "_count")
	case dto.MetricType_COUNTER:
		add(m.GetCounter().GetValue(), "")
	case dto.MetricType_GAUGE:
		add(m.GetGauge().GetValue(), "")
	default:
		add(m.GetUntyped().GetValue(), "")
	}
}
