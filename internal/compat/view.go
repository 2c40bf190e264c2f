package compat

import (
	"slices"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/compat/counters"
	"github.com/accel-exporter/accel-exporter/internal/exposition"
)

// View adds the families of dcgm-exporter to a page. It is safe for concurrent
// use.
type View struct {
	options  Options
	names    names
	families []family
	labels   []labelRow
	skipped  []counters.Skipped
}

// family is one row of the counters file.
type family struct {
	row    counters.Row
	metric *collector.Metric
	// mapping is nil if only DCGM has the field.
	mapping *mapping
}

// labelRow is a row of the counters file that is exported as a label.
type labelRow struct {
	row  counters.Row
	fact *fact // nil if only DCGM has the field
}

// Reasons why a row of a counters file has no series, in addition to the
// reasons of package counters.
const (
	// SkipNoSource: no source measures the field, and DCGM does not report it.
	SkipNoSource = "no_source"
	// SkipNotMeasured: no device of the node has the field now.
	SkipNotMeasured = "not_measured"
	// SkipDerived: dcgm-exporter computes the value, and it has no equivalent.
	SkipDerived = "derived"
)

// New returns a view with options.
func New(o Options) *View {
	if o.Counters == nil {
		o.Counters = Default(o.Release)
	}
	v := &View{options: o, names: o.names()}
	v.skipped = append(v.skipped, o.Counters.Skipped...)
	for _, row := range o.Counters.Rows {
		switch {
		case row.Derived && !servesDerived(row.Name):
			v.skipped = append(v.skipped, counters.Skipped{Line: row.Line, Name: row.Name, Reason: SkipDerived})
		case row.Type == counters.Label:
			v.labels = append(v.labels, labelRow{row, facts()[row.Field.ID]})
		default:
			v.families = append(v.families, family{row: row, metric: metricOf(&row), mapping: mappings()[row.Field.ID]})
		}
	}
	return v
}

// metricOf returns the family of a row.
func metricOf(row *counters.Row) *collector.Metric {
	m := &collector.Metric{Name: row.Name, Help: row.Help, Kind: collector.Gauge, Scope: collector.PerNode}
	if row.Type == counters.Counter && !row.Derived || row.Name == xidTotal {
		m.Kind = collector.Counter
	}
	return m
}

// Unserved returns the rows that have no value without DCGM, and the skipped
// rows, in the order of the file.
func (v *View) Unserved() []counters.Skipped {
	out := slices.Clone(v.skipped)
	for i := range v.families {
		if f := &v.families[i]; f.mapping == nil && !f.row.Derived {
			out = append(out, counters.Skipped{Line: f.row.Line, Name: f.row.Name, Reason: SkipNoSource})
		}
	}
	for _, l := range v.labels {
		if l.fact == nil {
			out = append(out, counters.Skipped{Line: l.row.Line, Name: l.row.Name, Reason: SkipNoSource})
		}
	}
	slices.SortFunc(out, func(a, b counters.Skipped) int { return a.Line - b.Line })
	return out
}

// Series implements exposition.View.
func (v *View) Series(s *collector.Snapshot) []exposition.Derived {
	p := v.read(s)
	var out []exposition.Derived
	shown := make([]bool, len(v.families))
	for i := range v.families {
		f := &v.families[i]
		before := len(out)
		if f.row.Derived {
			out = p.derived(out, f)
		} else {
			out = p.family(out, f)
		}
		shown[i] = len(out) > before
	}
	return p.appendSkipped(out, shown)
}

var fieldSkipped = &collector.Metric{
	Name:   "accel_compat_field_skipped",
	Help:   "1 for each row of dcgm-exporter's counters file that has no series on this node, with the reason. Only with --compat.dcgm-exporter.",
	Kind:   collector.Gauge,
	Scope:  collector.PerNode,
	Labels: []string{"field", "reason"},
	Range:  collector.Range{Min: 1, Max: 1},
	From:   []string{"exporter"},
	Values: []string{"reason: no_source (no source measures it, and DCGM is not configured or does not return it), not_measured (no device of this node has it now), binary (its value is a structure), type (DCGM has no histograms or summaries), unknown (no field of DCGM up to 4.7 has this name), ambiguous (the name has two meanings, and --compat.release is not set), derived (dcgm-exporter computes it, and it has no equivalent)"},
}

// Metrics returns the accel_ families that a View adds, for the documentation.
// No Snapshot has them.
func Metrics() []*collector.Metric { return []*collector.Metric{fieldSkipped} }

// appendSkipped adds a series for each row without a series. Without a device,
// rows that a device could have are not reported.
func (p *page) appendSkipped(out []exposition.Derived, shown []bool) []exposition.Derived {
	v := p.view
	add := func(name, reason string) {
		out = append(out, exposition.Derived{
			Metric: fieldSkipped, Labels: []exposition.Label{{Name: "field", Value: name}, {Name: "reason", Value: reason}}, Value: 1,
		})
	}
	for _, s := range v.skipped {
		add(s.Name, s.Reason)
	}
	miss := func(name string, known bool) {
		if !known {
			add(name, SkipNoSource)
		} else if len(p.units) > 0 {
			add(name, SkipNotMeasured)
		}
	}
	for i, ok := range shown {
		if f := &v.families[i]; !ok {
			miss(f.row.Name, f.mapping != nil || f.row.Derived)
		}
	}
	for _, l := range v.labels {
		if !p.labelled[l.row.Field.ID] {
			miss(l.row.Name, l.fact != nil)
		}
	}
	return out
}

var _ exposition.View = (*View)(nil)
