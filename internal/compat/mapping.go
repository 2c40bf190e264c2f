package compat

import (
	"sync"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/collector/dcgm/dcgmfield"
)

const (
	mebi  = 1 << 20
	nanos = 1e9
	mega  = 1e6
)

// mapping defines how a DCGM field is computed from the families of this
// exporter.
type mapping struct {
	field dcgmfield.Field
	// sources are tried in order. The first one that the device has is used.
	sources []source
	// board restricts the field to whole boards, because an instance has only a
	// part of the value.
	board bool
	// label is set for a field with one series per link. It names the label of
	// the readings that identifies the link.
	label string
	// class is the class of devices that have the field; empty means GPU.
	class string
}

// mappings maps field ids to mappings. It is built on first use: most exporters
// never need it.
var mappings = sync.OnceValue(func() map[uint16]*mapping {
	all := map[uint16]*mapping{}
	for _, group := range []map[string]mapping{sensors(), memory(), profiling(), faults(), links(), perLink(), switches(), cpus()} {
		for name, m := range group {
			f, ok := dcgmfield.ByName("DCGM_FI_" + name)
			if !ok || all[f.ID] != nil {
				panic("compat: field " + name)
			}
			m.field = f
			all[f.ID] = &m
		}
	}
	return all
})

// from returns a mapping with sources.
func from(s ...source) mapping { return mapping{sources: s} }

// share2 returns the source of a / (a + b).
func share2(query string, a, b *collector.Metric) source {
	return source{terms: []term{{metric: a}, {metric: b}}, combine: share, query: query}
}

// as returns s with another query.
func (s source) as(query string) source {
	s.query = query
	return s
}

// ofClass sets the class of all mappings.
func ofClass(class string, all map[string]mapping) map[string]mapping {
	for name, m := range all {
		m.class = class
		all[name] = m
	}
	return all
}
