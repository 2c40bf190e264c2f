package allocation

import (
	"slices"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
)

// readUse takes the readings of the device. A Snapshot without a new sample of
// the device does not change its use as long as the device answers.
func (st *device) readUse(d *collector.Device, now time.Time) {
	st.down, st.reportsUp, st.up = d.Down, false, false
	st.values = deviceValues{}
	if st.verdict = (collector.Verdict{}); d.Verdict != nil {
		st.verdict = *d.Verdict
	}
	var u use
	var c counters
	for i := range d.Readings {
		r := &d.Readings[i]
		switch r.Metric {
		case collector.DeviceUp:
			st.reportsUp, st.up = true, st.up || r.Value == 1
		case collector.MemoryUsed:
			st.values.memory = measured(r.Value)
		case collector.MemoryTotal:
			st.values.memoryTotal = measured(r.Value)
		case collector.PowerWatts:
			st.values.power = measured(r.Value)
		case collector.EnergyJoules:
			st.values.energy = measured(r.Value)
		default:
			u.take(r)
			c.take(r)
		}
	}
	st.values.utilization, st.values.sm = u.compute(), u.engine[slices.Index(engines[:], "sm")]
	st.conclude(d, u, &c, now)
}

// conclude takes a new use if the device was sampled again.
func (st *device) conclude(d *collector.Device, u use, c *counters, now time.Time) {
	switch fresh := d.Sampled.After(st.sampled) || st.sampled.IsZero(); {
	case !st.up:
		st.use = use{} // counters stay when a source fails, and are no information then
	case fresh:
		// An engine that is not reported any more may be the one at work.
		u.known = u.known && c.ratios >= st.lastCounters.ratios
		st.interval = d.Sampled.Sub(st.sampled)
		u = c.since(&st.lastCounters, st.interval.Seconds(), u)
		st.lastCounters, st.sampled, st.use = *c, d.Sampled, u
	}
	switch {
	case !st.use.known && !st.use.busy:
		st.knownFrom = time.Time{}
	case st.knownFrom.IsZero():
		st.knownFrom = now
	}
}

// countersAge is the longest time between two reads of a device's traffic
// counters, beside the interval of its samples: NVML's of NVLink.
const countersAge = 10 * time.Second

// blind returns how long traffic can go on before a counter shows it.
func (st *device) blind() time.Duration {
	for i := pcieTransmit; i <= linkReceive; i++ {
		if st.lastCounters.series[i] > 0 {
			return countersAge + st.interval
		}
	}
	return 0
}
