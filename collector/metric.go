package collector

import (
	"math"
	"slices"
	"strings"
	"sync"
)

// Kind is how a family behaves over time and when its device fails.
type Kind uint8

const (
	// Gauge is a measured state. It disappears as soon as its device or Source
	// fails: a stale temperature is wrong.
	Gauge Kind = iota + 1
	// Counter only grows, except when its origin restarts. It keeps its last
	// value while its device or Source fails.
	Counter
	// Info is a gauge of constant value 1 whose labels are the information. It
	// stays like a counter.
	Info
	// Mark is a gauge with the time of an event. It stays like a counter.
	Mark
)

// Stays reports whether series of this kind outlive the failure of their
// device or Source.
func (k Kind) Stays() bool { return k != Gauge }

// Type returns the Prometheus type of the family: "gauge" or "counter".
func (k Kind) Type() string {
	if k == Counter {
		return "counter"
	}
	return "gauge"
}

// Scope is what a family describes: a device or the node.
type Scope uint8

const (
	// PerDevice families carry the label device, and parent on partitions,
	// before their own.
	PerDevice Scope = iota
	// PerNode families carry their own labels only.
	PerNode
)

// Range is the range of values of a family, both ends included. A number outside
// it is a fault of its origin: it is counted, never exported.
type Range struct{ Min, Max float64 }

// Contains reports whether v is a number within r. It is false for NaN.
func (r Range) Contains(v float64) bool { return v >= r.Min && v <= r.Max }

var (
	ratio       = Range{0, 1}
	boolean     = Range{0, 1}
	celsius     = Range{-100, 250}
	watts       = Range{0, 100_000}
	nonNegative = Range{0, math.MaxInt64}
	timestamp   = Range{0, 1 << 40}
)

// Metric is one exported family: a row of the metric table. Rows are made by
// define, once, and compared by pointer.
type Metric struct {
	// Name is the full exported name, with its unit.
	Name string
	// Help is one sentence: what is measured, in which unit.
	Help string
	Kind Kind
	// Scope is PerDevice where the device labels precede Labels.
	Scope Scope
	// Labels are the names of the family's own labels. A Reading has their
	// values in the same order.
	Labels []string
	// Range is in the unit of Name. The zero Range means 0 to math.MaxInt64;
	// an Info is always 1.
	Range Range
	// From names the origin of the value by vendor: function, field id,
	// sysfs attribute, and the unit it has there.
	From []string
	// Values documents the values of a label with a closed set: "reason:
	// hw_thermal, sw_power_cap".
	Values []string
	// Level is the part that --metrics.detail=standard serves.
	Level Level

	index int
}

// Index identifies m. It is the same in every process of this build.
func (m *Metric) Index() int { return m.index }

var table []*Metric

// define adds a row to the table. Package-level variables call it, so the
// table is complete before any other code runs.
//
//go:noinline
func define(m Metric) *Metric {
	if m.Range == (Range{}) {
		m.Range = nonNegative
	}
	if m.Kind == Info {
		m.Range = Range{1, 1}
	}
	m.index = len(table)
	table = append(table, &m)
	return &m
}

// Table returns every metric of the sources, sorted by name.
func Table() []*Metric { return slices.Clone(sorted()) }

var sorted = sync.OnceValue(func() []*Metric {
	all := slices.Clone(table)
	slices.SortFunc(all, func(a, b *Metric) int { return strings.Compare(a.Name, b.Name) })
	return all
})

// byIndex returns the row with the given Index, or nil.
func byIndex(i int) *Metric {
	if i < 0 || i >= len(table) {
		return nil
	}
	return table[i]
}
