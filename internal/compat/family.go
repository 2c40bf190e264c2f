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
		return p.holders(f.add(out, p.labelsOf(u), s, weights, u.values(rows...)), f, u)
	}
	return out
}

// each adds a series for each reading, labelled with its link.
func (p *page) each(out []exposition.Derived, f *family, u *unit, s *source, rows []int, weights []float64) []exposition.Derived {
	for i, row := range rows {
		link := u.device.Readings[row].Label(f.mapping.label)
		out = f.add(out, p.linkLabels(u, link), s, weights[i:i+1], u.values(row))
	}
	return out
}

// add adds a series with the value that s computes, if there is one. It is rounded for an
// integer field.
func (f *family) add(out []exposition.Derived, labels []exposition.Label, s *source, weights, values []float64) []exposition.Derived {
	v, ok := s.combine(weights, values)
	if !ok {
		return out
	}
	if f.row.Field.Type == dcgmfield.Int64 {
		v = math.Round(v)
	}
	return append(out, exposition.Derived{Metric: f.metric, Labels: labels, Value: v})
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
				out = append(out, exposition.Derived{Metric: f.metric, Labels: labels, Value: r.Value})
			}
		}
	}
	return out
}

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
