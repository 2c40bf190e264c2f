package allocation

import (
	"slices"

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

// of returns the sum as the value of n processes, unknown if the value of one
// of them is.
func (s *sum) of(n int) quantity { return quantity{s.value, s.n == n} }

// alone reports whether the device is allocated to this pod only. Processes
// outside every allocation may use it too.
func (a *allocation) alone() bool {
	st := a.device
	return len(st.allocations) == 1 && st.omitted == 0 && !a.contested && (!a.shared || st.replicas > 0 && len(a.ids) >= st.replicas)
}

// owns reports whether all work of the device is the pod's.
func (a *allocation) owns() bool {
	return a.alone() && a.device.outsiders == 0
}

// power returns the power of the device if it is all drawn for the pod.
func (a *allocation) power() quantity {
	if a.device.parent != "" || !a.owns() {
		return quantity{}
	}
	return a.device.values.power
}

// measure sets what the device did for the pod in the latest sample.
func (a *allocation) measure() {
	st, u, i := a.device, &a.processes, &a.idleness
	a.utilization, a.memory = quantity{}, quantity{}
	whole := st.use.state(&i.settings)
	if a.owns() {
		a.utilization, a.memory, i.state = st.values.utilization, st.values.memory, whole
		return
	}
	if st.processesKnown && st.processesAttributed && (u.processes > 0 || !a.nominal) {
		if st.explainsUse(i.settings.Floor) {
			a.utilization = u.utilization.of(u.processes)
		}
		if st.explainsMemory() {
			a.memory = u.memory.of(u.processes)
		}
	}
	switch {
	case st.processesKnown && u.peak > i.settings.Floor:
		i.state = active
	case a.nominal, a.unsure:
		i.state = unknown // the pod may use another device, or only watch this one
	case a.utilization.known || whole == idle:
		// A copy shows as use of memory. Traffic without it belongs to another
		// process.
		i.state = idle
	case whole == active:
		i.state = unattributable
	default:
		i.state = unknown
	}
}

// unlisted is the memory that a device may use beyond that of its processes:
// the driver's own, in bytes, or a tenth of the memory in use.
const unlisted = 512 << 20

// explainsUse reports whether the listed processes account for the work of the
// device. The driver omits processes outside the PID namespace of its caller
// and answers without an error. Both values are means over different times, so
// half of the device's is enough; only an idle device needs no process.
func (st *device) explainsUse(floor float64) bool {
	whole := st.values.utilization
	return whole.known && (whole.value <= floor || st.listed.utilization.value >= whole.value/2)
}

// explainsMemory is explainsUse for memory.
func (st *device) explainsMemory() bool {
	whole := st.values.memory
	return whole.known && whole.value-st.listed.memory.value <= max(unlisted, whole.value/10)
}

// fit limits the sum over the allocations to the device's value: the values of
// processes and of the device are measured over different times.
func (st *device) fit() {
	var utilization, memory sum
	for _, a := range st.allocations {
		utilization.add(a.utilization)
		memory.add(a.memory)
	}
	most := 1.0
	if st.values.utilization.known {
		most = st.values.utilization.value
	}
	for _, a := range st.allocations {
		if utilization.value > most {
			a.utilization.value *= most / utilization.value
		}
		if st.values.memory.known && memory.value > st.values.memory.value {
			a.memory.value *= st.values.memory.value / memory.value
		}
	}
}

// maxProcesses is the most processes of a device that are attributed.
const maxProcesses = 512

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

// listProcesses merges the processes of the device: a source lists a process
// that computes and draws twice. It reports whether they are all known.
func (j *Judge) listProcesses(st *device, d *collector.Device) bool {
	st.processes = st.processes[:0]
	if d.Clients == nil || !st.up || j.owners.proc == nil || len(d.Clients) > 2*maxProcesses {
		return false
	}
	for i := range d.Clients {
		c := &d.Clients[i]
		at := slices.IndexFunc(st.processes, func(p deviceProcess) bool { return p.pid == c.PID })
		if at < 0 {
			at = len(st.processes)
			st.processes = append(st.processes, deviceProcess{pid: c.PID})
		}
		st.processes[at].take(c)
	}
	return len(st.processes) <= maxProcesses
}

// attribute finds the pods of the processes on the device.
func (j *Judge) attribute(st *device, d *collector.Device) {
	st.outsiders, st.processesAttributed, st.unattributedBy, st.listed = 0, true, [numberOfReasons]int{}, processUse{}
	for _, a := range st.allocations {
		a.processes = processUse{}
	}
	if st.processesKnown = j.listProcesses(st, d); !st.processesKnown {
		st.processes = st.processes[:0]
		return
	}
	for i := range st.processes {
		p := &st.processes[i]
		p.process = j.owners.of(p.pid, j.now)
		st.listed.take(p)
		j.classify(st, p)
	}
}
