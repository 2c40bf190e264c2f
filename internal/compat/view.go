package compat

import (
	"slices"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/compat/counters"
	"github.com/accel-exporter/accel-exporter/internal/exposition"
)

// View is dcgm-exporter's page. It is safe for concurrent use.
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
	// mapping is nil where only DCGM itself has the field.
	mapping *mapping
}

// labelRow is a row whose value is a label.
type labelRow struct {
	row  counters.Row
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
			v.skipped = append(v.skipped, counters.Skipped{Line: row.Line, Name: row.Name, Reason: SkipDerived})
		case row.Type == counters.Label:
			v.labels = append(v.labels, labelRow{row, facts()[row.Field.ID]})
		default:
			v.families = append(v.families, family{row: row, metric: metricOf(&row), mapping: mappings()[row.Field.ID]})
		}
	}
	return v
}

// metricOf is the family that a row makes.
func metricOf(row *counters.Row) *collector.Metric {
	m := &collector.Metric{Name: row.Name, Help: row.Help, Kind: collector.Gauge, Scope: collector.PerNode}
	if row.Type == counters.Counter && !row.Derived || row.Name == xidTotal {
		m.Kind = collector.Counter
	}
	return m
}

// Unserved returns the rows that nothing here has a value for unless DCGM is
// asked, in the order of the file, and those that were left out.
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
	return p.appendJobs(p.appendSkipped(out, shown))
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
