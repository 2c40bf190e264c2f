package engine

import (
	"encoding/binary"
	"hash/maphash"
	"math"
	"slices"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	dto "github.com/prometheus/client_model/go"
)

// feed puts the page into the ring as a scrape with honor_labels would: labels
// of the target stand on every series that has none of that name itself, and
// series that were on the page before and are not any more end.
type feed struct {
	target []labels.Label
	// known is what became of the metrics of each family when they were last
	// seen. The page is laid out alike from one evaluation to the next.
	known map[string]*knownFamily
	// live are the series that the page had last, next those that it has now.
	live, next []*series
	up         *series
	round      uint64
	builder    *labels.Builder
	seed       maphash.Seed
	text       []byte
	duplicates uint64
}

type knownFamily struct {
	round   uint64 // in which the page had it last
	read    bool
	metrics []knownMetric
}

type knownMetric struct {
	hash uint64 // of the labels
	// series are those that the metric became, nil for those that no rule
	// reads. A histogram becomes one for each bucket, its sum and its count.
	// There are none where the limit of series left one out.
	series []*series
}

func newFeed(target map[string]string) *feed {
	f := &feed{known: map[string]*knownFamily{}, builder: labels.NewBuilder(labels.EmptyLabels()), seed: maphash.MakeSeed()}
	for name, v := range target {
		f.target = append(f.target, labels.Label{Name: name, Value: v})
	}
	slices.SortFunc(f.target, func(a, b labels.Label) int { return strings.Compare(a.Name, b.Name) })
	return f
}

// reset forgets which series the page became, because other rules read others.
func (f *feed) reset() { clear(f.known); f.up = nil }

// take adds a page at the latest tick of the ring. Without a page the target
// is down: all its series end.
func (f *feed) take(r *ring, page []*dto.MetricFamily, up bool) {
	f.round++
	for _, family := range page {
		f.family(r, family)
	}
	// What is not on the page may be forgotten by the ring before it returns.
	for name, k := range f.known {
		if k.round != f.round {
			delete(f.known, name)
		}
	}
	if f.up == nil {
		f.up = r.get(f.labels([]labels.Label{{Name: model.MetricNameLabel, Value: "up"}}, nil), false)
	}
	f.add(r, f.up, map[bool]float64{true: 1}[up])
	now := r.now()
	for _, s := range f.live {
		if len(s.runs) > 0 && s.runs[len(s.runs)-1].to != now {
			r.end(s)
		}
	}
	clear(f.live)
	f.live, f.next = f.next, f.live[:0]
}

func (f *feed) add(r *ring, s *series, v float64) {
	switch {
	case s == nil:
	case r.has(s):
		f.duplicates++
	default:
		if isStale(v) {
			v = math.NaN() // the mark of an end is ours to set
		}
		r.append(s, v)
		f.next = append(f.next, s)
	}
}

func (f *feed) family(r *ring, family *dto.MetricFamily) {
	name := family.GetName()
	known := f.known[name]
	if known == nil {
		known = &knownFamily{}
		for _, suffix := range suffixes(family.GetType()) {
			known.read = known.read || r.needs.named(name+suffix)
		}
		f.known[name] = known
	}
	if known.round = f.round; !known.read {
		return
	}
	for i, m := range family.Metric {
		hash := f.hashOf(m)
		if i == len(known.metrics) {
			known.metrics = append(known.metrics, knownMetric{})
		}
		k := &known.metrics[i]
		parts := partsOf(family.GetType(), m)
		found := k.series
		if found == nil || k.hash != hash || len(found) != parts {
			before := r.hits.series
			found = f.find(r, name, family.GetType(), m, parts)
			if k.hash, k.series = hash, found; r.hits.series != before {
				k.series = nil
			}
		}
		f.values(r, found, family.GetType(), m)
	}
	clear(known.metrics[len(family.Metric):])
	known.metrics = known.metrics[:len(family.Metric)]
}

// suffixes are what the names of a family's series end in.
func suffixes(t dto.MetricType) []string {
	switch t {
	case dto.MetricType_HISTOGRAM:
		return []string{"_bucket", "_sum", "_count"}
	case dto.MetricType_SUMMARY:
		return []string{"", "_sum", "_count"}
	}
	return []string{""}
}

// partsOf is how many series a metric becomes.
func partsOf(t dto.MetricType, m *dto.Metric) int {
	switch t {
	case dto.MetricType_HISTOGRAM:
		return len(buckets(m)) + 3
	case dto.MetricType_SUMMARY:
		return len(m.GetSummary().GetQuantile()) + 2
	}
	return 1
}

// buckets returns the buckets of a histogram but the last, that of +Inf, which
// is made from the count.
func buckets(m *dto.Metric) []*dto.Bucket {
	b := m.GetHistogram().GetBucket()
	if n := len(b); n > 0 && math.IsInf(b[n-1].GetUpperBound(), 1) {
		return b[:n-1]
	}
	return b
}

// find returns the series of a metric.
func (f *feed) find(r *ring, name string, t dto.MetricType, m *dto.Metric, parts int) []*series {
	found := make([]*series, 0, parts)
	add := func(suffix, label string, at float64) {
		l := []labels.Label{{Name: model.MetricNameLabel, Value: name + suffix}}
		if label != "" {
			l = append(l, labels.Label{Name: label, Value: labels.FormatOpenMetricsFloat(at)})
		}
		found = append(found, r.get(f.labels(l, m.GetLabel()), false))
	}
	switch t {
	case dto.MetricType_HISTOGRAM:
		for _, b := range buckets(m) {
			add("_bucket", model.BucketLabel, b.GetUpperBound())
		}
		add("_bucket", model.BucketLabel, math.Inf(1))
		add("_sum", "", 0)
		add("_count", "", 0)
	case dto.MetricType_SUMMARY:
		for _, q := range m.GetSummary().GetQuantile() {
			add("", model.QuantileLabel, q.GetQuantile())
		}
		add("_sum", "", 0)
		add("_count", "", 0)
	default:
		add("", "", 0)
	}
	return found
}

// values adds the samples of a metric, in the order in which find returned its
// series.
func (f *feed) values(r *ring, of []*series, t dto.MetricType, m *dto.Metric) {
	i := 0
	add := func(v float64) { f.add(r, of[i], v); i++ }
	switch t {
	case dto.MetricType_HISTOGRAM:
		h := m.GetHistogram()
		for _, b := range buckets(m) {
			add(float64(b.GetCumulativeCount()))
		}
		add(float64(h.GetSampleCount()))
		add(h.GetSampleSum())
		add(float64(h.GetSampleCount()))
	case dto.MetricType_SUMMARY:
		s := m.GetSummary()
		for _, q := range s.GetQuantile() {
			add(q.GetValue())
		}
		add(s.GetSampleSum())
		add(float64(s.GetSampleCount()))
	case dto.MetricType_COUNTER:
		add(m.GetCounter().GetValue())
	case dto.MetricType_GAUGE:
		add(m.GetGauge().GetValue())
	default:
		add(m.GetUntyped().GetValue())
	}
}

// labels makes the labels of a series. An empty label on the page keeps the
// target's away, as it does in a scrape.
func (f *feed) labels(own []labels.Label, pairs []*dto.LabelPair) labels.Labels {
	b := f.builder
	b.Reset(labels.EmptyLabels())
	for _, l := range f.target {
		b.Set(l.Name, l.Value)
	}
	for _, p := range pairs {
		b.Set(p.GetName(), p.GetValue())
	}
	for _, l := range own {
		b.Set(l.Name, l.Value)
	}
	return b.Labels()
}

// hashOf is of the labels of m. Two metrics of one page that have the same by
// chance would be taken for each other; of 64 bits that is no risk.
func (f *feed) hashOf(m *dto.Metric) uint64 {
	b := f.text[:0]
	for _, p := range m.GetLabel() {
		b = binary.AppendUvarint(b, uint64(len(p.GetName())))
		b = append(b, p.GetName()...)
		b = binary.AppendUvarint(b, uint64(len(p.GetValue())))
		b = append(b, p.GetValue()...)
	}
	f.text = b
	return maphash.Bytes(f.seed, b)
}
