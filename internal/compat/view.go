package compat

import (
	"math"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/dcgmfield"
	"github.com/accel-exporter/accel-exporter/internal/exporter"
)

// View is dcgm-exporter's page. It is safe for concurrent use.
type View struct {
	options  Options
	names    names
	families []family
	labels   []labelRow
	skipped  []dcgmfield.Skipped
}

// family is one row of the counters file.
type family struct {
	row    dcgmfield.Row
	metric *collector.Metric
	// mapping is nil where only DCGM itself has the field.
	mapping *mapping
}

// labelRow is a row whose value is a label.
type labelRow struct {
	row  dcgmfield.Row
	fact *fact // nil where only DCGM itself has it
}

// Why a row of a counters file is not shown, beside dcgmfield's reasons.
const (
	// SkipNoSource: nothing here measures it, and DCGM is not asked for it.
	SkipNoSource = "no_source"
	// SkipNotMeasured: no device of the node has it now.
	SkipNotMeasured = "not_measured"
	// SkipDerived: it is a number of samples, or says nothing of a device.
	SkipDerived = "derived"
)

// New returns the view that the options ask for.
func New(o Options) *View {
	if o.Counters == nil {
		o.Counters = Default()
	}
	v := &View{options: o, names: o.names()}
	v.skipped = append(v.skipped, o.Counters.Skipped...)
	for _, row := range o.Counters.Rows {
		switch {
		case row.Derived && !servesDerived(row.Name):
			v.skipped = append(v.skipped, dcgmfield.Skipped{Line: row.Line, Name: row.Name, Reason: SkipDerived})
		case row.Type == dcgmfield.RowLabel:
			v.labels = append(v.labels, labelRow{row, facts()[row.Field.ID]})
		default:
			v.families = append(v.families, family{row: row, metric: metricOf(&row), mapping: mappings()[row.Field.ID]})
		}
	}
	return v
}

// metricOf is the family that a row makes.
func metricOf(row *dcgmfield.Row) *collector.Metric {
	m := &collector.Metric{Name: row.Name, Help: row.Help, Kind: collector.Gauge, Scope: collector.PerNode}
	if row.Type == dcgmfield.RowCounter && !row.Derived || row.Name == xidTotal {
		m.Kind = collector.Counter
	}
	return m
}

// Unserved returns the rows that nothing here has a value for unless DCGM is
// asked, in the order of the file, and those that were left out.
func (v *View) Unserved() []dcgmfield.Skipped {
	out := append([]dcgmfield.Skipped(nil), v.skipped...)
	for i := range v.families {
		if f := &v.families[i]; f.mapping == nil && !f.row.Derived {
			out = append(out, dcgmfield.Skipped{Line: f.row.Line, Name: f.row.Name, Reason: SkipNoSource})
		}
	}
	for _, l := range v.labels {
		if l.fact == nil {
			out = append(out, dcgmfield.Skipped{Line: l.row.Line, Name: l.row.Name, Reason: SkipNoSource})
		}
	}
	return out
}

// Series implements exporter.View.
func (v *View) Series(s *collector.Snapshot) []exporter.Derived {
	p := v.read(s)
	var out []exporter.Derived
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

// family adds the series of one field.
func (p *page) family(out []exporter.Derived, f *family) []exporter.Derived {
	mapped := map[*unit]bool{}
	if f.mapping != nil {
		parts := map[*unit]bool{} // boards whose instances have the field
		for _, u := range p.units {
			if u.board != nil && !f.mapping.board && u.has(f.mapping) {
				parts[u.board] = true
			}
		}
		for _, u := range p.units {
			if parts[u] || u.board != nil && f.mapping.board {
				mapped[u] = true // what the whole board has is not what its parts have
				continue
			}
			n := len(out)
			out = p.unit(out, f, u)
			mapped[u] = len(out) > n
		}
	}
	for _, u := range p.units {
		if !mapped[u] {
			out = p.raw(out, f, u)
		}
	}
	return out
}

// has reports whether u has a reading for the field.
func (u *unit) has(m *mapping) bool {
	if !u.isA(m.class) {
		return false
	}
	for i := range m.sources {
		if rows, _ := u.rows(&m.sources[i]); rows != nil {
			return true
		}
	}
	return false
}

// unit adds what one GPU or instance has of a field.
func (p *page) unit(out []exporter.Derived, f *family, u *unit) []exporter.Derived {
	if !u.isA(f.mapping.class) {
		return out
	}
	for i := range f.mapping.sources {
		s := &f.mapping.sources[i]
		rows, weights := u.rows(s)
		if rows == nil {
			continue
		}
		if f.mapping.label != "" {
			return p.each(out, f, u, s, rows, weights)
		}
		out = append(out, exporter.Derived{
			Metric: f.metric, Labels: p.labelsOf(u), Rows: rows,
			Value: value(f.row.Field, s.combine, weights),
		})
		return p.holders(out, f, u)
	}
	return out
}

// each adds a series for every reading, by link.
func (p *page) each(out []exporter.Derived, f *family, u *unit, s *source, rows []int, weights []float64) []exporter.Derived {
	for i, row := range rows {
		link := label(u.at(row), f.mapping.label)
		out = append(out, exporter.Derived{
			Metric: f.metric, Labels: p.linkLabels(u, link), Rows: []int{row},
			Value: value(f.row.Field, s.combine, weights[i:i+1]),
		})
	}
	return out
}

// value closes over the weights. Whole numbers in DCGM are whole numbers here.
func value(f dcgmfield.Field, combine func(w, in []float64) (float64, bool), weights []float64) func([]float64) (float64, bool) {
	if f.Type != dcgmfield.Int64 {
		return func(in []float64) (float64, bool) { return combine(weights, in) }
	}
	return func(in []float64) (float64, bool) {
		v, ok := combine(weights, in)
		return math.Round(v), ok
	}
}

// label is the value of a label of r.
func label(r *collector.Reading, name string) string {
	for i, l := range r.Metric.Labels {
		if l == name && i < len(r.Labels) {
			return r.Labels[i]
		}
	}
	return ""
}
