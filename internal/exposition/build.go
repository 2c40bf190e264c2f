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
	// metrics are the series of the readings of each device, and then of the node; nil
	// of a reading that is not on the page.
	metrics [][]*dto.Metric
}

// newPage builds the page of s. The series of the view come last: of equal series the
// Snapshot's own stays. What has not changed since the last page with the same settings,
// which may be nil, is taken from it.
func newPage(s *collector.Snapshot, set *Settings, last *page) *page {
	b := builder{settings: set, named: map[string]*family{}, known: map[*collector.Metric]*family{}}
	p := &page{of: s}
	add := func(d *collector.Device, readings []collector.Reading) {
		was, known := last.series(len(p.metrics), d)
		metrics := make([]*dto.Metric, len(readings))
		for i := range readings {
			r := &readings[i]
			if i < len(was) && was[i].Metric == r.Metric && slices.Equal(was[i].Labels, r.Labels) {
				metrics[i] = known[i]
			}
			metrics[i] = b.add(d, r, metrics[i])
		}
		p.metrics = append(p.metrics, metrics)
	}
	for i := range s.Devices {
		add(&s.Devices[i], s.Devices[i].Readings)
	}
	add(nil, s.Node)
	b.addView(s)
	families := slices.SortedFunc(maps.Values(b.named), func(x, y *family) int { return strings.Compare(x.metric.Name, y.metric.Name) })
	for _, f := range families {
		b.dropped[duplicate] += f.sort()
	}
	b.dropped[panicked] = uint64(len(s.Panics))
	p.dropped = b.dropped
	for _, f := range families {
		if len(f.series) > 0 {
			p.families = append(p.families, f.convert())
		}
	}
	return p
}

// series returns the readings and the series of the device at a position, if it is d, or
// of the node, if d is nil.
func (p *page) series(at int, d *collector.Device) ([]collector.Reading, []*dto.Metric) {
	switch {
	case p == nil:
	case d == nil:
		return p.of.Node, p.metrics[len(p.of.Devices)]
	case at < len(p.of.Devices) && p.of.Devices[at].ID == d.ID && p.of.Devices[at].Parent == d.Parent:
		return p.of.Devices[at].Readings, p.metrics[at]
	}
	return nil, nil
}

// builder collects the series of one Snapshot.
type builder struct {
	settings *Settings
	named    map[string]*family
	// known are the families by metric, nil of a metric without one.
	known   map[*collector.Metric]*family
	dropped [len(reasons)]uint64
}

// family is a metric family on its way to the page.
type family struct {
	metric *collector.Metric
	series []*dto.Metric
}

// add adds a reading of d or, if d is nil, of the node. It returns its series, nil where
// it has none. last is the one of an earlier page, or nil.
func (b *builder) add(d *collector.Device, r *collector.Reading, last *dto.Metric) *dto.Metric {
	m := r.Metric
	f, known := b.known[m]
	if !known {
		f = b.family(m)
		b.known[m] = f
	}
	switch {
	case f == nil || len(r.Labels) != len(m.Labels) || d == nil && m.Scope == collector.PerDevice:
		b.dropped[invalid]++
		return nil
	}
	standard := b.settings.Standard && (d == nil || !d.Attention)
	if standard && (!m.Serves(r.Labels) || m.Level.HidesZero() && r.Value == 0) {
		return nil
	}
	switch {
	case last == nil:
		labels, ok := pairs(labelsOf(d, r))
		if !ok {
			b.dropped[invalid]++
			return nil
		}
		last = newMetric(m, labels, r.Value)
	case last.GetCounter().GetValue()+last.GetGauge().GetValue() != r.Value: // it has one of them
		last = newMetric(m, last.Label, r.Value)
	}
	f.series = append(f.series, last)
	return last
}

func newMetric(m *collector.Metric, labels []*dto.LabelPair, v float64) *dto.Metric {
	if m.Kind.Type() == "counter" {
		return &dto.Metric{Label: labels, Counter: &dto.Counter{Value: &v}}
	}
	return &dto.Metric{Label: labels, Gauge: &dto.Gauge{Value: &v}}
}

// family returns the family of m. It returns nil without a metric, for an invalid name, and
// where another metric has the name: two metrics would give one family two meanings.
func (b *builder) family(m *collector.Metric) *family {
	if m == nil {
		return nil
	}
	f := b.named[m.Name]
	switch {
	case f != nil && f.metric == m:
		return f
	case f != nil || m == ownMetric || !validName(m.Name):
		return nil
	}
	f = &family{metric: m}
	b.named[m.Name] = f
	return f
}

// sort sorts the series. Of equal series it keeps the first measured; it returns the
// number of the others.
func (f *family) sort() uint64 {
	all := len(f.series)
	slices.SortStableFunc(f.series, func(x, y *dto.Metric) int { return compareLabels(x.Label, y.Label) })
	f.series = slices.CompactFunc(f.series, func(x, y *dto.Metric) bool { return compareLabels(x.Label, y.Label) == 0 })
	return uint64(all - len(f.series))
}

func (f *family) convert() *dto.MetricFamily {
	out := &dto.MetricFamily{Name: new(f.metric.Name), Help: new(help(f.metric)), Type: dto.MetricType_GAUGE.Enum()}
	if f.metric.Kind.Type() == "counter" {
		out.Type = dto.MetricType_COUNTER.Enum()
	}
	out.Metric = f.series
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

// View adds series that are derived from a Snapshot, under other names.
type View interface {
	// Series returns the series of s. It is called once for each Snapshot that is
	// served, and must be safe for concurrent use. The caller owns the result.
	Series(s *collector.Snapshot) []Derived
}

// Derived is a series whose Value is computed from readings of the Snapshot.
type Derived struct {
	// Metric has name, help and kind. It is not part of collector's table. Its
	// Labels are not used: series of one family may have different labels.
	Metric *collector.Metric
	// Labels are in any order. Labels with an empty value are left out, which
	// means the same to Prometheus.
	Labels []Label
	Value  float64
}

// addView adds the series of the view.
func (b *builder) addView(s *collector.Snapshot) {
	if b.settings.View == nil {
		return
	}
	for _, d := range b.settings.View.Series(s) {
		labels, ok := pairs(slices.DeleteFunc(d.Labels, func(l Label) bool { return l.Value == "" }))
		f := b.family(d.Metric)
		if !ok || f == nil {
			b.dropped[invalid]++
			continue
		}
		f.series = append(f.series, newMetric(d.Metric, labels, d.Value))
	}
}

// Reasons why a series is not on the page, as positions in reasons.
const (
	duplicate = iota
	invalid
	panicked
)

// reasons are the values of the label reason, sorted.
var reasons = [...]string{duplicate: "duplicate", invalid: "invalid", panicked: "panic"}

var ownMetric = &collector.Metric{
	Name:   "accel_exporter_series_dropped_total",
	Help:   "Series left off the page, counted once per snapshot served.",
	Kind:   collector.Counter,
	Scope:  collector.PerNode,
	Labels: []string{"reason"},
	Range:  collector.Range{Min: 0, Max: 1 << 53},
	From:   []string{"exporter"},
	Values: []string{"reason: duplicate (the first measured stays), invalid (labels that do not fit the family), panic (an error of the exporter while it drew conclusions, whose series are all missing: counted once)"},
}

// Metrics returns the families that this package adds to a page, for the
// documentation. No Snapshot has them.
func Metrics() []*collector.Metric { return []*collector.Metric{ownMetric} }
