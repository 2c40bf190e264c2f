package collector

import (
	"math"
	"slices"
	"sort"
)

// Distribution is one series of a Histogram: how many observations there were,
// by size. It only grows.
type Distribution struct {
	Metric *Metric
	// Device and Parent are those of the device that a PerDevice family
	// describes.
	Device, Parent string
	// Labels are the values of Metric.Labels, in that order.
	Labels []string
	// Counts holds the observations in each of Metric.Buckets, those of
	// smaller buckets not included, and last those beyond all.
	Counts []uint64
	// Sum is that of all observations, in the unit of the metric's name.
	Sum float64
}

// NewDistribution returns a series without observations. device is empty for
// a PerNode family.
func NewDistribution(m *Metric, device string, labels ...string) *Distribution {
	return &Distribution{Metric: m, Device: device, Labels: labels, Counts: make([]uint64, len(m.Buckets)+1)}
}

// Observe adds an observation. One that is negative or no number is left out.
func (d *Distribution) Observe(v float64) {
	if v < 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return
	}
	d.Counts[sort.SearchFloat64s(d.Metric.Buckets, v)]++
	d.Sum += v
}

// Clone returns a copy that shares nothing that grows.
func (d *Distribution) Clone() Distribution {
	c := *d
	c.Counts = slices.Clone(d.Counts)
	return c
}

// Count returns the number of observations.
func (d *Distribution) Count() uint64 {
	var n uint64
	for _, c := range d.Counts {
		n += c
	}
	return n
}
