package collector

import (
	"math"
	"slices"
	"sort"
)

// Distribution is one series of a Histogram: the number of observations by size.
// It only grows.
type Distribution struct {
	Metric *Metric
	// Device and Parent identify the device that a PerDevice family describes.
	Device, Parent string
	// Labels are the values of Metric.Labels, in that order.
	Labels []string
	// Counts are the observations in each of Metric.Buckets, not cumulative,
	// and last the observations above all buckets.
	Counts []uint64
	// Sum is the sum of all observations, in the unit of the metric's name.
	Sum float64
}

// NewDistribution returns a series without observations. device is empty for
// a PerNode family.
func NewDistribution(m *Metric, device string, labels ...string) *Distribution {
	return &Distribution{Metric: m, Device: device, Labels: labels, Counts: make([]uint64, len(m.Buckets)+1)}
}

// Observe adds an observation. It ignores negative values, infinities and NaN.
func (d *Distribution) Observe(v float64) {
	if v < 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return
	}
	d.Counts[sort.SearchFloat64s(d.Metric.Buckets, v)]++
	d.Sum += v
}

// Clone returns a copy that later observations do not change.
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
