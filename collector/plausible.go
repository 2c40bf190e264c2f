package collector

// bounds are families whose values a device's own limit bounds. A board exceeds its power
// limit for moments, and a clock its maximum by a little, never twofold. A device is off
// long before half as many degrees again as its shutdown.
var bounds = []struct {
	metric, limit *Metric
	kind          string // label limit of limit; "" where it has none
	factor        float64
}{
	{PowerWatts, PowerLimit, "max", 2},
	{MemoryUsed, MemoryTotal, "", 1},
	{ClockHertz, ClockMax, "", 2},
	{TemperatureCelsius, TemperatureLimit, "shutdown", 1.5},
}

// checkBounds rejects the readings of d that contradict a limit of d: a sensor that is
// frozen or wrong, by which its driver may throttle the device.
func (d *Device) checkBounds() {
	for _, b := range bounds {
		// A reading of a sensor or clock is compared with the limit of the same one.
		beyond := func(r *Reading) bool {
			for i := range d.Readings {
				if l := &d.Readings[i]; l.Metric == b.limit && r.Value > l.Value*b.factor &&
					(len(r.Labels) == 0 || l.Labels[0] == r.Labels[0]) && (b.kind == "" || l.Label("limit") == b.kind) {
					return true
				}
			}
			return false
		}
		implausible := false
		for i := range d.Readings {
			r := &d.Readings[i]
			implausible = implausible || r.Metric == b.metric && beyond(r)
		}
		if !implausible {
			continue
		}
		rest := make([]Reading, 0, len(d.Readings)) // a source may return its readings again
		for _, r := range d.Readings {
			if r.Metric != b.metric || !beyond(&r) {
				rest = append(rest, r)
				continue
			}
			d.Reject(b.metric, RejectLimit)
		}
		d.Readings = rest
		d.SetBool(ReadingImplausible, true, b.metric.Name)
	}
}
