package compat

import (
	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/exposition"
)

var fieldSkipped = &collector.Metric{
	Name:   "accel_compat_field_skipped",
	Help:   "1 for each row of dcgm-exporter's counters file that has no series on this node, with the reason. Only with --compat.dcgm-exporter.",
	Kind:   collector.Gauge,
	Scope:  collector.PerNode,
	Labels: []string{"field", "reason"},
	Range:  collector.Range{Min: 1, Max: 1},
	From:   []string{"exporter"},
	Values: []string{"reason: no_source (no source measures it, and DCGM is not configured or does not return it), not_measured (no device of this node has it now), binary (its value is a structure), type (DCGM has no histograms or summaries), derived (dcgm-exporter computes it, and it has no equivalent)"},
}

// Metrics returns the accel_ families that a View adds, for the documentation.
// No Snapshot has them.
func Metrics() []*collector.Metric { return []*collector.Metric{fieldSkipped, jobRejected} }

// appendSkipped adds a series for each row without a series. Without a device,
// rows that a device could have are not reported.
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
		if !p.labelled[l.row.Field.ID] {
			miss(l.row.Name, l.fact != nil)
		}
	}
	return out
}

var _ exposition.View = (*View)(nil)
