package collector

import (
	"slices"
	"strings"
)

// totalOf maps a family whose first label is a part of the device to the family of
// the sum over parts.
var totalOf = map[*Metric]*Metric{
	NVLinkErrors:   GPUNVLinkErrors,
	NVLinkTransmit: GPUNVLinkTransmit,
	NVLinkReceive:  GPUNVLinkReceive,
}

// totals are counters of a device that sum counters of its parts. They start at 0
// when the device is first seen, and add increases, not values: the restart of one
// part must not look like a restart of the sum.
type totals []Reading

// add adds the increases from was, which includes counters that later rounds could
// not read, to now.
func (t *totals) add(now, was []Reading) {
	for i := range now {
		r := &now[i]
		m := totalOf[r.Metric]
		if m == nil || len(r.Labels) == 0 {
			continue
		}
		sum := t.at(m, r.Labels[1:])
		switch before, ok := valueOf(r, was, i); {
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
