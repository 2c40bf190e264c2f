package allocation

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

// driverMemory is the memory that a device may use beyond that of its processes:
// the driver's own, in bytes, or a tenth of the memory in use.
const driverMemory = 512 << 20

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
	return whole.known && whole.value-st.listed.memory.value <= max(driverMemory, whole.value/10)
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
