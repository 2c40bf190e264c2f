package allocation

import (
	"github.com/accel-exporter/accel-exporter/collector"
)

// processUse is what the pod's processes do on the device.
type processUse struct {
	processes           int
	utilization, memory sum
	peak                float64 // the largest utilization of any engine
}

func (u *processUse) take(p *deviceProcess) {
	u.processes++
	u.utilization.add(p.utilization)
	u.memory.add(p.memory)
	if p.utilization.known {
		u.peak = max(u.peak, p.peak)
	}
}

// deviceProcess is a process that uses a device.
type deviceProcess struct {
	pid     int
	process *process
	reason  unattributedReason

	utilization quantity // of the compute engine, 0 to 1
	memory      quantity // bytes
	peak        float64  // the largest utilization of any engine
}

// take adds what was measured of the process.
func (p *deviceProcess) take(c *collector.Client) {
	for i := range c.Readings {
		switch r := &c.Readings[i]; r.Metric {
		case collector.UtilizationRatio:
			p.peak = max(p.peak, r.Value)
			if first(r) == "compute" {
				p.utilization = measured(r.Value)
			}
		case collector.MemoryUsed:
			p.memory = measured(max(p.memory.value, r.Value))
		}
	}
}

// unattributedReason is why a process on a device belongs to no allocation of
// it.
type unattributedReason uint8

const (
	otherPod unattributedReason = iota
	hostProcess
	unknownPod
	hidden
	numberOfReasons
	attributed
)

// reasonNames are the values of the label reason.
var reasonNames = [numberOfReasons]string{"other_pod", "host_process", "unknown_pod", "hidden"}

var reasonLabels = pairs(reasonNames[:])
