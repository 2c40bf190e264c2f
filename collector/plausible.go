package collector

import "slices"

// bounds are families whose values a device's own limit bounds. A board exceeds its power
// limit for moments, never twofold.
var bounds = []struct {
	metric, limit *Metric
	label         string // of limit; "" where it has none
	factor        float64
}{
	{PowerWatts, PowerLimit, "max", 2},
	{MemoryUsed, MemoryTotal, "", 1},
}

// checkBounds rejects the readings of d that contradict a limit of d: a sensor that is
// frozen or wrong, by which its driver may throttle the device.
func (d *Device) checkBounds() {
	for _, b := range bounds {
		i := slices.IndexFunc(d.Readings, func(r Reading) bool {
			return r.Metric == b.limit && (b.label == "" || slices.Contains(r.Labels, b.label))
		})
		if i < 0 {
			continue
		}
		limit, before := d.Readings[i].Value*b.factor, len(d.Readings)
		beyond := func(r Reading) bool { return r.Metric == b.metric && r.Value > limit }
		if !slices.ContainsFunc(d.Readings, beyond) {
			continue
		}
		d.Readings = slices.DeleteFunc(slices.Clone(d.Readings), beyond) // a source may return them again
		for range before - len(d.Readings) {
			d.Reject(b.metric, RejectLimit)
		}
		d.SetBool(ReadingImplausible, true, b.metric.Name)
	}
}
