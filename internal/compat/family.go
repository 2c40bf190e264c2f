package compat

import (
	"math"
	"strings"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/collector/dcgm/dcgmfield"
	"github.com/accel-exporter/accel-exporter/internal/exposition"
)

// family adds the series of one field.
func (p *page) family(out []exposition.Derived, f *family) []exposition.Derived {
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
				mapped[u] = true // a value is exported for the board or for its instances, not both
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

// unit adds the series of a field for one unit.
func (p *page) unit(out []exposition.Derived, f *family, u *unit) []exposition.Derived {
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
		out = append(out, exposition.Derived{
			Metric: f.metric, Labels: p.labelsOf(u), Rows: rows,
			Value: value(f.row.Field, s.combine, weights),
		})
		return p.holders(out, f, u)
	}
	return out
}

// each adds a series for each reading, labelled with its link.
func (p *page) each(out []exposition.Derived, f *family, u *unit, s *source, rows []int, weights []float64) []exposition.Derived {
	for i, row := range rows {
		link := u.at(row).Label(f.mapping.label)
		out = append(out, exposition.Derived{
			Metric: f.metric, Labels: p.linkLabels(u, link), Rows: []int{row},
			Value: value(f.row.Field, s.combine, weights[i:i+1]),
		})
	}
	return out
}

// value returns a function that computes a field from its readings. The result
// is rounded for integer fields.
func value(f dcgmfield.Field, combine func(w, in []float64) (float64, bool), weights []float64) func([]float64) (float64, bool) {
	if f.Type != dcgmfield.Int64 {
		return func(in []float64) (float64, bool) { return combine(weights, in) }
	}
	return func(in []float64) (float64, bool) {
		v, ok := combine(weights, in)
		return math.Round(v), ok
	}
}

// raw adds the values of a field that DCGM reports, in DCGM's units.
func (p *page) raw(out []exposition.Derived, f *family, u *unit) []exposition.Derived {
	for _, m := range []*collector.Metric{collector.DCGMField, collector.DCGMFieldTotal} {
		for _, i := range u.readings[m] {
			r := &u.device.Readings[i]
			if !isField(r, f.row.Field.ID) {
				continue
			}
			if labels, ok := p.entityLabels(u, r.Label("entity")); ok {
				out = append(out, exposition.Derived{Metric: f.metric, Labels: labels, Rows: []int{u.base + i}, Value: same})
			}
		}
	}
	return out
}

func same(in []float64) (float64, bool) { return in[0], true }

// isField reports whether r is a value of a field, by any of the field's names.
func isField(r *collector.Reading, id uint16) bool {
	f, ok := dcgmfield.ByName(r.Label("field"))
	return ok && f.ID == id
}

// entityLabels returns the labels of an entity: a link (link-3), a core (core-7)
// or the whole unit (""). It returns false for any other entity.
func (p *page) entityLabels(u *unit, entity string) ([]exposition.Label, bool) {
	kind, number, _ := strings.Cut(entity, "-")
	switch kind {
	case "":
		return p.labelsOf(u), true
	case "link":
		return p.linkLabels(u, number), true
	case "core":
		return p.coreLabels(u, number), true
	}
	return nil, false
}

// rawFact returns the string that DCGM reports for a field, or "".
func rawFact(readings []collector.Reading, id uint16) string {
	for i := range readings {
		if r := &readings[i]; r.Metric == collector.DCGMFieldInfo && isField(r, id) {
			return r.Label("value")
		}
	}
	return ""
}
