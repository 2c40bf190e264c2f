package collector

import "slices"

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
