package engine

import (
	"math"

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

// family adds the samples of a family that some rule reads. The page has no histogram, and
// the one summary, of Go's garbage collector, is left out.
func (f *feed) family(r *ring, family *dto.MetricFamily) {
	if _, read := r.needs.of(family.GetName()); !read {
		return
	}
	for _, m := range family.Metric {
		b := f.base()
		for _, p := range m.GetLabel() {
			b.Set(p.GetName(), p.GetValue())
		}
		b.Set(model.MetricNameLabel, family.GetName())
		switch family.GetType() {
		case dto.MetricType_COUNTER:
			f.add(r, r.get(b.Labels(), false), m.GetCounter().GetValue())
		case dto.MetricType_GAUGE:
			f.add(r, r.get(b.Labels(), false), m.GetGauge().GetValue())
		case dto.MetricType_UNTYPED:
			f.add(r, r.get(b.Labels(), false), m.GetUntyped().GetValue())
		}
	}
}
