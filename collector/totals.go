package collector

import (
	"slices"
	"strings"
)

// totalOf returns the family of the sum over parts, of a family whose first label is a
// part of the device, or nil.
func totalOf(m *Metric) *Metric {
	switch m {
	case NVLinkErrors:
		return GPUNVLinkErrors
	case NVLinkTransmit:
		return GPUNVLinkTransmit
	case NVLinkReceive:
		return GPUNVLinkReceive
	}
	return nil
}

// integralOf returns the family of the sum over time, of a rate that is the mean since
// the previous sample, or nil.
func integralOf(m *Metric) *Metric {
	switch m {
	case PCIeTransmitRate:
		return PCIeTransmit
	case PCIeReceiveRate:
		return PCIeReceive
	}
	return nil
}

// totals are counters of a device that sum counters of its parts, or a rate over
// time. They start at 0 when the device is first seen, and add increases, not values:
// the restart of one part, or of the source, must not look like a restart of the sum.
type totals []Reading

// add adds the increases from was, which includes counters that later rounds could
// not read, to d.
func (t *totals) add(d, was *Device) {
	for i := range d.Readings {
		r := &d.Readings[i]
		if m := integralOf(r.Metric); m != nil && !was.Sampled.IsZero() {
			t.at(m, r.Labels).Value += r.Value * max(0, d.Sampled.Sub(was.Sampled).Seconds())
		}
		m := totalOf(r.Metric)
		if m == nil || len(r.Labels) == 0 {
			continue
		}
		sum := t.at(m, r.Labels[1:])
		switch before, ok := valueOf(r, was.Readings, i); {
		case !ok: // counted before the device was first seen
		case r.Value < before:
			sum.Value += r.Value
		default:
			sum.Value += r.Value - before
		}
	}
}

// at returns the total of a family and labels, a new one at 0.
func (t *totals) at(m *Metric, labels []string) *Reading {
	total := Reading{Metric: m, Labels: labels}
	i := slices.IndexFunc(*t, func(r Reading) bool { return r.sameSeries(&total) })
	if i < 0 {
		i = len(*t)
		*t = append(*t, total)
	}
	return &(*t)[i]
}

// valueOf returns the value of the series of r among readings, where it is most
// likely at position i.
func valueOf(r *Reading, readings []Reading, i int) (float64, bool) {
	if i >= len(readings) || !r.sameSeries(&readings[i]) {
		i = slices.IndexFunc(readings, func(o Reading) bool { return o.sameSeries(r) })
	}
	if i < 0 {
		return 0, false
	}
	return readings[i].Value, true
}

// maxCells bounds the series of one family that cells create.
const maxCells = 2000

// cells are the counter series of one family, in order of appearance. A library
// that returns endless values must not create endless series: beyond maxCells,
// series share one for each value of their first label.
type cells struct {
	metric *Metric
	index  map[string]int
	list   []Reading
}

func (c *cells) add(by float64, labels ...string) { c.at(labels).Value += by }

func (c *cells) has(labels ...string) bool {
	_, ok := c.index[strings.Join(labels, "\xff")]
	return ok
}

func (c *cells) at(labels []string) *Reading {
	key := strings.Join(labels, "\xff")
	i, ok := c.index[key]
	if !ok && len(c.list) >= maxCells {
		labels = slices.Clone(labels)
		for n := range labels[1:] {
			labels[n+1] = "other"
		}
		key = strings.Join(labels, "\xff")
		i, ok = c.index[key]
	}
	if !ok {
		if c.index == nil {
			c.index = map[string]int{}
		}
		i = len(c.list)
		c.index[key] = i
		c.list = append(c.list, Reading{Metric: c.metric, Labels: labels})
	}
	return &c.list[i]
}
