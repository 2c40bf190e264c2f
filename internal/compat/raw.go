package compat

import (
	"strings"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/collector/dcgm/dcgmfield"
	"github.com/accel-exporter/accel-exporter/internal/exposition"
)

// raw adds the values of a field that DCGM reports, in DCGM's units.
func (p *page) raw(out []exposition.Derived, f *family, u *unit) []exposition.Derived {
	for _, m := range []*collector.Metric{collector.DCGMField, collector.DCGMFieldTotal} {
		for _, i := range u.readings[m] {
			r := &u.device.Readings[i]
			if !isField(r, f.row.Field.ID) {
				continue
			}
			if labels, ok := p.entityLabels(u, label(r, "entity")); ok {
				out = append(out, exposition.Derived{Metric: f.metric, Labels: labels, Rows: []int{u.base + i}, Value: same})
			}
		}
	}
	return out
}

func same(in []float64) (float64, bool) { return in[0], true }

// isField reports whether r is a value of a field, by any of the field's names.
func isField(r *collector.Reading, id uint16) bool {
	f, ok := dcgmfield.ByName(label(r, "field"))
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
			return label(r, "value")
		}
	}
	return ""
}
