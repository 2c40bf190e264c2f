package allocation

import (
	"math"
	"slices"

	"github.com/accel-exporter/accel-exporter/collector"
)

// use is how busy a device, or a process's share of it, was in the latest
// sample.
type use struct {
	// known: the values that show all work are present. For a GPU these are
	// the values of its compute engine, for an FPGA the runs of its units.
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

// take adds a gauge.
func (u *use) take(r *collector.Reading) {
	var engine int
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
	default:
		return
	}
	u.peak = max(u.peak, r.Value)
	if engine >= 0 {
		u.known, u.engine[engine] = true, measured(r.Value)
	}
}

// engines are the engines that show all compute work: at least one engine must be
// known. The first known engine gives the utilization of the device: from
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
	}
}

// since adds to u what the counters grew since was.
func (c *counters) since(was *counters, seconds float64, u use) use {
	for i := range numberOfCounters {
		if c.series[i] == 0 || c.series[i] != was.series[i] {
			continue
		}
		grown := c.sum[i] - was.sum[i]
		switch i {
		case executions:
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
