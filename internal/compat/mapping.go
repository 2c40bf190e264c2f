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

// mapping says what a field of DCGM is called here.
type mapping struct {
	field dcgmfield.Field
	// sources are tried in order; the first that the device has is taken.
	sources []source
	// board: what an instance has of it is not the whole, so that only the
	// board is shown.
	board bool
	// label is the label of a reading that makes a series each: of links.
	label string
	// class of devices that have the field; empty for GPUs.
	class string
}

// mappings are by the id of the field. Most exporters never need them.
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

// from is a mapping by sources.
func from(s ...source) mapping { return mapping{sources: s} }

// share2 is a as a part of a and b.
func share2(query string, a, b *collector.Metric) source {
	return source{terms: []term{{metric: a}, {metric: b}}, combine: share, query: query}
}

// as gives s another query.
func (s source) as(query string) source {
	s.query = query
	return s
}

func ofClass(class string, all map[string]mapping) map[string]mapping {
	for name, m := range all {
		m.class = class
		all[name] = m
	}
	return all
}
