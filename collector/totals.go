package collector

import "slices"

// totalOf names, by a family whose first label is a part of the device, the
// family in which the parts are added up.
var totalOf = map[*Metric]*Metric{
	NVLinkErrors:   GPUNVLinkErrors,
	NVLinkTransmit: GPUNVLinkTransmit,
	NVLinkReceive:  GPUNVLinkReceive,
}

// totals are counters of a device that add up what its parts count. They begin
// at 0 when the device is first seen, and take increases, not values: a part
// that begins anew must not make the sum fall, which a reader would take for a
// restart of all of it.
type totals []Reading

// add takes the increases from one round of the device to the next. Whatever
// the rounds between could not read is among was.
func (t *totals) add(now, was []Reading) {
	for i := range now {
		r := &now[i]
		m := totalOf[r.Metric]
		if m == nil || len(r.Labels) == 0 {
			continue
		}
		sum := t.at(m, r.Labels[1:])
		switch before, ok := valueOf(r, was, i); {
		case !ok: // what it has counted so far is of before we looked
		case r.Value < before:
			sum.Value += r.Value
		default:
			sum.Value += r.Value - before
		}
	}
}

// at returns the total of a family and labels, which is new at 0.
func (t *totals) at(m *Metric, labels []string) *Reading {
	total := Reading{Metric: m, Labels: labels}
	i := slices.IndexFunc(*t, func(r Reading) bool { return r.sameSeries(&total) })
	if i < 0 {
		i = len(*t)
		*t = append(*t, total)
	}
	return &(*t)[i]
}

// valueOf returns the value that the series of r has among readings, where it
// is most likely at position i.
func valueOf(r *Reading, readings []Reading, i int) (float64, bool) {
	if i >= len(readings) || !r.sameSeries(&readings[i]) {
		i = slices.IndexFunc(readings, func(o Reading) bool { return o.sameSeries(r) })
	}
	if i < 0 {
		return 0, false
	}
	return readings[i].Value, true
}
