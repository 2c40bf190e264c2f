package exposition

import (
	"maps"
	"slices"
	"strings"

	dto "github.com/prometheus/client_model/go"

	"github.com/accel-exporter/accel-exporter/collector"
)

// page is a Snapshot as metric families. It does not change.
type page struct {
	of       *collector.Snapshot
	families []*dto.MetricFamily // sorted by name
	dropped  [len(reasons)]uint64
}

// newPage builds the page of s. The series of the view come last: of equal series the
// Snapshot's own stays.
func newPage(s *collector.Snapshot, set *Settings) *page {
	b := builder{families: map[string]*family{}, settings: set}
	for i := range s.Devices {
		d := &s.Devices[i]
		for j := range d.Readings {
			b.add(d, &d.Readings[j])
		}
	}
	for i := range s.Node {
		b.add(nil, &s.Node[i])
	}
	b.addView(s)
	families := slices.SortedFunc(maps.Values(b.families), func(x, y *family) int { return strings.Compare(x.metric.Name, y.metric.Name) })
	for _, f := range families {
		b.dropped[duplicate] += f.sort()
	}
	b.dropped[limited] = limit(families, set.MaxSeries)
	b.dropped[panicked] = uint64(len(s.Panics))
	p := &page{of: s, dropped: b.dropped}
	for _, f := range families {
		if len(f.series) > 0 {
			p.families = append(p.families, f.convert())
		}
	}
	p.families = merge(p.families, histograms(s, set))
	return p
}

// builder collects the series of one Snapshot.
type builder struct {
	settings *Settings
	families map[string]*family // by name
	dropped  [len(reasons)]uint64
}

// family is a metric family on its way to the page.
type family struct {
	metric *collector.Metric
	series []series
}

type series struct {
	labels []*dto.LabelPair
	value  float64
	rank   rank
}

func (b *builder) add(d *collector.Device, r *collector.Reading) {
	m := r.Metric
	if m == nil || m.Kind == collector.Histogram {
		b.dropped[invalid]++
		return
	}
	if b.settings.drops(m) {
		return
	}
	f := b.family(m)
	if f == nil || len(r.Labels) != len(m.Labels) || d == nil && m.Scope == collector.PerDevice {
		b.dropped[invalid]++
		return
	}
	standard := b.settings.Standard && (d == nil || !d.Attention)
	if standard && (!m.Serves(r.Labels) || m.Level.HidesZero() && r.Value == 0) {
		return
	}
	labels, ok := pairs(labelsOf(d, r))
	if !ok {
		b.dropped[invalid]++
		return
	}
	f.series = append(f.series, series{labels, r.Value, rankOf(d, m)})
}

// family returns the family of m. It returns nil for an invalid name, and where another
// metric has the name: two metrics would give one family two meanings.
func (b *builder) family(m *collector.Metric) *family {
	f := b.families[m.Name]
	switch {
	case f != nil && f.metric == m:
		return f
	case f != nil || m == ownMetric || !validName(m.Name):
		return nil
	}
	f = &family{metric: m}
	b.families[m.Name] = f
	return f
}

// sort sorts the series. Of equal series it keeps the first measured; it returns the
// number of the others.
func (f *family) sort() uint64 {
	all := len(f.series)
	slices.SortStableFunc(f.series, func(x, y series) int { return compareLabels(x.labels, y.labels) })
	f.series = slices.CompactFunc(f.series, func(x, y series) bool { return compareLabels(x.labels, y.labels) == 0 })
	return uint64(all - len(f.series))
}

func (f *family) convert() *dto.MetricFamily {
	out := &dto.MetricFamily{Name: new(f.metric.Name), Help: new(help(f.metric)), Type: dto.MetricType_GAUGE.Enum()}
	counter := f.metric.Kind.Type() == "counter"
	if counter {
		out.Type = dto.MetricType_COUNTER.Enum()
	}
	for i := range f.series {
		s := &f.series[i]
		m := &dto.Metric{Label: s.labels}
		if counter {
			m.Counter = &dto.Counter{Value: &s.value}
		} else {
			m.Gauge = &dto.Gauge{Value: &s.value}
		}
		out.Metric = append(out.Metric, m)
	}
	return out
}

func help(m *collector.Metric) string { return strings.ToValidUTF8(m.Help, "\uFFFD") }

// merge merges two lists that are sorted by name. Of equal names the family of the
// first list stays.
func merge(a, b []*dto.MetricFamily) []*dto.MetricFamily {
	out := make([]*dto.MetricFamily, 0, len(a)+len(b))
	for _, f := range b {
		for len(a) > 0 && a[0].GetName() < f.GetName() {
			out, a = append(out, a[0]), a[1:]
		}
		if len(a) == 0 || a[0].GetName() != f.GetName() {
			out = append(out, f)
		}
	}
	return append(out, a...)
}
