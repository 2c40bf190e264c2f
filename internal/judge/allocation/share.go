package allocation

import "github.com/accel-exporter/accel-exporter/collector"

// own is what the processes of a holder do on its device.
type processUse struct {
	processes int
	// Of those that it is known of.
	utilization, memory   float64
	utilizations, amounts int
	peak                  float64
}

func (o *processUse) take(p *deviceProcess) {
	o.processes++
	if p.hasUtilization {
		o.utilizations++
		o.utilization += p.utilization
		o.peak = max(o.peak, p.peak)
	}
	if p.hasMemory {
		o.amounts++
		o.memory += p.memory
	}
}

// alone reports whether what the device does is done for h, processes of
// strangers apart.
func (a *allocation) alone() bool {
	return len(a.device.allocations) == 1 && a.device.omitted == 0 && !a.shared && !a.contested
}

// power is what the device draws, where that is for h alone.
func (a *allocation) power() (watts float64, known bool) {
	st := a.device
	return st.values.power, st.values.has[3] && st.parent == "" && a.alone() && st.outsiders == 0
}

// measure says what the device did for the holder in the latest sample.
func (a *allocation) measure() {
	st, o := a.device, &a.own
	a.has = [2]bool{}
	whole := st.use.state(&a.idle)
	if a.alone() && (!st.processesKnown || st.outsiders == 0) {
		a.utilization, a.has[0] = st.values.utilization, st.values.has[0]
		a.memory, a.has[1] = st.values.memory, st.values.has[1]
		a.state = whole
		return
	}
	told := st.processesKnown && st.processesAttributed // every process is known by its owner
	if told && (o.processes > 0 || !a.nominal) {
		a.utilization, a.has[0] = o.utilization, o.utilizations == o.processes
		a.memory, a.has[1] = o.memory, o.amounts == o.processes
	}
	switch {
	case st.processesKnown && o.peak > a.idle.Floor:
		a.state = active
	case a.nominal:
		a.state = blind // it may use another device
	case a.has[0] || whole == idle:
		// A copy shows as use of memory, so traffic without it is another's.
		a.state = idle
	case whole == active:
		a.state = unattributable
	default:
		a.state = blind
	}
}

// fit keeps the sum over the holders within the device: what processes did and
// what the device did are not measured over the same time.
func (st *device) fit() {
	var utilization, memory float64
	for _, a := range st.allocations {
		if a.has[0] {
			utilization += a.utilization
		}
		if a.has[1] {
			memory += a.memory
		}
	}
	most := 1.0
	if st.values.has[0] {
		most = st.values.utilization
	}
	if utilization > most {
		for _, a := range st.allocations {
			a.utilization *= most / utilization
		}
	}
	if st.values.has[1] && memory > st.values.memory {
		for _, a := range st.allocations {
			a.memory *= st.values.memory / memory
		}
	}
}

// maxProcesses is how many processes of one device are told apart.
const maxProcesses = 512

// seen is one process on a device.
type deviceProcess struct {
	pid                       int
	process                   *process
	utilization, peak, memory float64
	hasUtilization, hasMemory bool
	reason                    unattributedReason
}

// take adds what was measured of the process.
func (p *deviceProcess) take(c *collector.Client) {
	for i := range c.Readings {
		switch r := &c.Readings[i]; r.Metric {
		case collector.UtilizationRatio:
			p.peak = max(p.peak, r.Value)
			if first(r) == "compute" {
				p.utilization, p.hasUtilization = r.Value, true
			}
		case collector.MemoryUsed:
			p.memory, p.hasMemory = max(p.memory, r.Value), true
		}
	}
}

// list puts the processes of the device together: one that computes and draws
// is in the list of its source twice.
func (j *Judge) listProcesses(st *device, d *collector.Device) bool {
	st.processes = st.processes[:0]
	if d.Clients == nil || !st.up || j.owners.proc == nil || len(d.Clients) > 2*maxProcesses {
		return false
	}
	for i := range d.Clients {
		c := &d.Clients[i]
		at := -1
		for k := range st.processes {
			if st.processes[k].pid == c.PID {
				at = k
				break
			}
		}
		if at < 0 {
			at = len(st.processes)
			st.processes = append(st.processes, deviceProcess{pid: c.PID})
		}
		st.processes[at].take(c)
	}
	return len(st.processes) <= maxProcesses
}

// attribute finds whose processes are on the device.
func (j *Judge) attribute(st *device, d *collector.Device) {
	st.outsiders, st.processesAttributed, st.unattributedBy = 0, true, [numberOfReasons]int{}
	for _, a := range st.allocations {
		a.own = processUse{}
	}
	if st.processesKnown = j.listProcesses(st, d); !st.processesKnown {
		st.processes = st.processes[:0]
		return
	}
	for i := range st.processes {
		p := &st.processes[i]
		p.process = j.owners.of(p.pid, j.now)
		j.classify(st, p)
	}
}
