package allocation

import "github.com/accel-exporter/accel-exporter/collector"

// own is what the processes of a holder do on its device.
type own struct {
	processes int
	// Of those that it is known of.
	utilization, memory   float64
	utilizations, amounts int
	peak                  float64
}

func (o *own) take(p *seen) {
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
func (h *hold) alone() bool {
	return len(h.device.holds) == 1 && h.device.omitted == 0 && !h.shared && !h.contested
}

// power is what the device draws, where that is for h alone.
func (h *hold) power() (watts float64, known bool) {
	st := h.device
	return st.values.power, st.values.has[3] && st.parent == "" && h.alone() && st.strangers == 0
}

// measure says what the device did for the holder in the latest sample.
func (h *hold) measure() {
	st, o := h.device, &h.own
	h.has = [2]bool{}
	whole := st.use.state(&h.idle)
	if h.alone() && (!st.looked || st.strangers == 0) {
		h.utilization, h.has[0] = st.values.utilization, st.values.has[0]
		h.memory, h.has[1] = st.values.memory, st.values.has[1]
		h.state = whole
		return
	}
	told := st.looked && st.clean // every process is known by its owner
	if told && (o.processes > 0 || !h.nominal) {
		h.utilization, h.has[0] = o.utilization, o.utilizations == o.processes
		h.memory, h.has[1] = o.memory, o.amounts == o.processes
	}
	switch {
	case st.looked && o.peak > h.idle.Floor:
		h.state = active
	case h.nominal:
		h.state = blind // it may use another device
	case h.has[0] || whole == idle:
		// A copy shows as use of memory, so traffic without it is another's.
		h.state = idle
	case whole == active:
		h.state = disputed
	default:
		h.state = blind
	}
}

// fit keeps the sum over the holders within the device: what processes did and
// what the device did are not measured over the same time.
func (st *device) fit() {
	var utilization, memory float64
	for _, h := range st.holds {
		if h.has[0] {
			utilization += h.utilization
		}
		if h.has[1] {
			memory += h.memory
		}
	}
	most := 1.0
	if st.values.has[0] {
		most = st.values.utilization
	}
	if utilization > most {
		for _, h := range st.holds {
			h.utilization *= most / utilization
		}
	}
	if st.values.has[1] && memory > st.values.memory {
		for _, h := range st.holds {
			h.memory *= st.values.memory / memory
		}
	}
}

// maxProcesses is how many processes of one device are told apart.
const maxProcesses = 512

// seen is one process on a device.
type seen struct {
	pid                       int
	process                   *process
	utilization, peak, memory float64
	hasUtilization, hasMemory bool
	suspicion                 suspicion
}

// take adds what was measured of the process.
func (p *seen) take(c *collector.Client) {
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
func (j *Judge) list(st *device, d *collector.Device) bool {
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
			st.processes = append(st.processes, seen{pid: c.PID})
		}
		st.processes[at].take(c)
	}
	return len(st.processes) <= maxProcesses
}

// attribute finds whose processes are on the device.
func (j *Judge) attribute(st *device, d *collector.Device) {
	st.strangers, st.clean, st.audit = 0, true, [numberOfSuspicions]int{}
	for _, h := range st.holds {
		h.own = own{}
	}
	if st.looked = j.list(st, d); !st.looked {
		st.processes = st.processes[:0]
		return
	}
	for i := range st.processes {
		p := &st.processes[i]
		p.process = j.owners.of(p.pid, j.now)
		j.suspect(st, p)
	}
}
