package compat

import (
	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/exposition"
)

var fieldSkipped = &collector.Metric{
	Name:   "accel_compat_field_skipped",
	Help:   "1 for each row of dcgm-exporter's counters file that nothing on this node can be shown for, with the reason. Only with --compat.dcgm-exporter.",
	Kind:   collector.Gauge,
	Scope:  collector.PerNode,
	Labels: []string{"field", "reason"},
	Range:  collector.Range{Min: 1, Max: 1},
	From:   []string{"exporter"},
	Values: []string{"reason: no_source (nothing measures it, and DCGM is not asked or does not answer for it), not_measured (no device of this node has it at present), binary (its value is a structure), type (no value of DCGM is a histogram or a summary), derived (a number of dcgm-exporter's own without an honest equivalent)"},
}

// Metrics returns the families that a View adds under its own name, as rows for
// the documentation. They are in no Snapshot.
func Metrics() []*collector.Metric { return []*collector.Metric{fieldSkipped, jobRejected} }

// appendSkipped adds a series for every row that is not shown. As long as
// there is no device, nothing is said of what one would have.
func (p *page) appendSkipped(out []exposition.Derived, shown []bool) []exposition.Derived {
	v := p.view
	add := func(name, reason string) {
		out = append(out, exposition.Derived{
			Metric: fieldSkipped, Labels: []exposition.Label{{Name: "field", Value: name}, {Name: "reason", Value: reason}},
			Value: func([]float64) (float64, bool) { return 1, true },
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
		if !p.told[l.row.Field.ID] {
			miss(l.row.Name, l.fact != nil)
		}
	}
	return out
}

var _ exposition.View = (*View)(nil)
