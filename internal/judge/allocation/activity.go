package allocation

import (
	"math"
	"slices"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
)

// use is how busy a device, or a process's share of it, was in the latest
// sample.
type use struct {
	// known: the values that show all work are present. For a GPU these are
	// those of its compute engine, for an FPGA the runs of its units or the
	// transactions of its fabric.
	known bool
	// peak is the largest share of time or cycles of any engine.
	peak float64
	// traffic is the largest of all directions and links, in bytes per second.
	traffic float64
	// busy: there was activity that is work in any amount.
	busy bool
	// engine are the values of engines.
	engine [len(engines)]quantity
}

// state is what a use means.
type state uint8

const (
	unknown state = iota
	idle
	active
	// unattributable: the device is at work, and it is unknown for which pod.
	unattributable
)

func (u *use) state(i *Idle) state {
	switch {
	case u.busy || u.peak > i.Floor || u.traffic > i.Traffic:
		return active
	case u.known:
		return idle
	}
	return unknown
}

// The counters of a device that show work between two samples.
const (
	pcieTransmit = iota
	pcieReceive
	linkTransmit
	linkReceive
	executions
	transactions
	numberOfCounters
)

// counters are sums over the series of a family.
type counters struct {
	sum    [numberOfCounters]float64
	series [numberOfCounters]int
	ratios int // gauges of engines
}

func (c *counters) add(which int, v float64) {
	c.sum[which] += v
	c.series[which]++
}

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

// take adds a gauge.
func (u *use) take(r *collector.Reading) {
	engine := -1
	switch r.Metric {
	case collector.UtilizationRatio:
		engine = slices.Index(engines[:1], first(r))
	case collector.ActivityRatio:
		engine = slices.Index(engines[1:], first(r))
		if engine >= 0 {
			engine++
		}
	case collector.PCIeTransmitRate, collector.PCIeReceiveRate, collector.NVLinkTransmitRate, collector.NVLinkReceiveRate:
		u.traffic = max(u.traffic, r.Value)
		return
	case collector.FPGAComputeUnitState:
		u.busy = u.busy || len(r.Labels) > 1 && r.Labels[1] == "running" && r.Value == 1
		return
	case collector.FPGAQueueLength:
		u.busy = u.busy || r.Value > 0
		return
	default:
		return
	}
	u.peak = max(u.peak, r.Value)
	if engine >= 0 {
		u.known, u.engine[engine] = true, measured(r.Value)
	}
}

// engines are those that show all compute work: one of them must be known. The
// first known one is the utilization of the device: from
// accel_utilization_ratio, then from accel_activity_ratio.
var engines = [...]string{"compute", "graphics", "sm"}

func (u *use) compute() quantity {
	for _, q := range u.engine {
		if q.known {
			return q
		}
	}
	return quantity{}
}

// take adds a counter, or counts a gauge of an engine.
func (c *counters) take(r *collector.Reading) {
	switch r.Metric {
	case collector.UtilizationRatio, collector.ActivityRatio:
		c.ratios++
	case collector.PCIeTransmit:
		c.add(pcieTransmit, r.Value)
	case collector.PCIeReceive:
		c.add(pcieReceive, r.Value)
	case collector.NVLinkTransmit:
		c.add(linkTransmit, r.Value)
	case collector.NVLinkReceive:
		c.add(linkReceive, r.Value)
	case collector.FPGAExecutions:
		c.add(executions, r.Value)
	case collector.FPGATransactions:
		if first(r) == "memory" { // reading a card's sensors is mmio
			c.add(transactions, r.Value)
		}
	}
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

// since adds to u what the counters grew since was.
func (c *counters) since(was *counters, seconds float64, u use) use {
	for i := range numberOfCounters {
		if c.series[i] == 0 || c.series[i] != was.series[i] {
			continue
		}
		grown := c.sum[i] - was.sum[i]
		switch i {
		case executions, transactions:
			// They restart when a bitstream is loaded, which is work too.
			u.known = true
			u.busy = u.busy || grown != 0
		default:
			if grown > 0 && seconds > 0 && !math.IsInf(grown, 0) {
				u.traffic = max(u.traffic, grown/seconds)
			}
		}
	}
	return u
}

func first(r *collector.Reading) string {
	if len(r.Labels) == 0 {
		return ""
	}
	return r.Labels[0]
}

// quantity is a measured value, or an unknown one.
type quantity struct {
	value float64
	known bool
}

func measured(v float64) quantity { return quantity{v, true} }

// pointer returns the value as a Report has it: nil if unknown.
func (q quantity) pointer() *float64 {
	if !q.known {
		return nil
	}
	return new(q.value)
}
