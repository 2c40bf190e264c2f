package allocation

import (
	"fmt"
	"slices"
	"strings"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/podmap"
)

// Report returns the state after the latest Snapshot. It belongs to the
// caller.
func (j *Judge) Report() *Report {
	j.mu.Lock()
	defer j.mu.Unlock()
	out := &Report{State: podmap.StateStarting, Devices: []Device{}}
	if j.node.pods == nil {
		return out
	}
	out.State, out.Reason = j.node.pods.State, j.join.status.Reason
	for _, st := range j.node.order {
		out.Devices = append(out.Devices, j.reportDevice(st))
		out.Unattributed = st.unattributed(out.Unattributed)
	}
	slices.SortStableFunc(out.Devices, func(a, b Device) int { return strings.Compare(a.ID, b.ID) })
	for _, x := range j.join.summary.resources {
		r := Resource{Name: x.name, Allocated: x.allocated, Devices: x.devices}
		if x.plugin {
			r.Allocatable = new(x.allocatable)
		}
		out.Resources = append(out.Resources, r)
	}
	out.Unresolved = slices.Clone(j.join.unresolved)
	return out
}

func (j *Judge) reportDevice(st *device) Device {
	d := Device{ID: st.id, OmittedHolders: st.omitted}
	for _, o := range st.offers {
		switch {
		case o.unlisted:
		case o.now:
			d.Allocatable = append(d.Allocatable, o.resource)
		default:
			d.NotAllocatable = append(d.NotAllocatable, o.resource)
		}
	}
	if st.processesKnown {
		d.Processes = new(len(st.processes))
		for i := range st.processes[:min(len(st.processes), maxReported)] {
			d.ProcessList = append(d.ProcessList, st.processes[i].report())
		}
	}
	for _, a := range st.allocations {
		d.Holders = append(d.Holders, j.reportAllocation(a))
	}
	d.Availability, d.Why = j.availability(st, &d)
	return d
}

func plural(n int, what, ending string) string {
	if n != 1 {
		what += ending
	}
	return fmt.Sprint(n, " ", what)
}

// availability returns whether the device can be allocated, and the reason if
// not.
func (j *Judge) availability(st *device, d *Device) (Availability, string) {
	_, known := j.join.holders(st)
	switch {
	case len(st.allocations)+st.omitted > 0:
		return Allocated, ""
	case st.parts > 0:
		if st.parts == 1 {
			return Partitioned, "split into 1 partition, which is allocated instead"
		}
		return Partitioned, fmt.Sprintf("split into %d partitions, which are allocated instead", st.parts)
	case j.node.pods.State == podmap.StateAbsent:
		return Unmanaged, "no kubelet on this machine, or its socket is not mounted"
	case !known:
		return Unknown, j.unknownReason(st)
	}
	if n := len(st.processes); st.processesKnown && n > 0 {
		return Occupied, fmt.Sprintf("not allocated, and used by %s%s", plural(n, "process", "es"), commands(st))
	}
	switch {
	case j.node.released && !st.reportsUp:
		return Free, "not allocated; the exporter has released its driver, so nothing else is known"
	case len(d.NotAllocatable) > 0 && st.verdict.State == "failed":
		return NotAllocatable, "not allocatable as " + strings.Join(d.NotAllocatable, ", ") + ": it has failed"
	case len(d.NotAllocatable) > 0:
		return NotAllocatable, "not allocatable as " + strings.Join(d.NotAllocatable, ", ") + ": its device plugin reports it as unhealthy, leaves it out, or has not registered"
	case len(d.Allocatable) == 0 && !j.node.pods.AllocatableTime.IsZero():
		return Free, "not allocated, and no device plugin offers it"
	}
	return Free, "not allocated"
}

// unknownReason returns why it is unknown whether the device is allocated.
func (j *Judge) unknownReason(st *device) string {
	switch {
	case j.node.pods.State == podmap.StateUnconfirmed:
		return "the kubelet may not have listed all pods yet"
	case j.node.pods.State != podmap.StateFresh:
		return "the kubelet does not answer"
	case j.join.mayBeAllocated(st):
		return "a pod has a device whose id matches none of this machine, and it may be this one"
	}
	return ""
}

// commands names some of the processes on the device.
func commands(st *device) string {
	var names []string
	for _, p := range st.processes {
		if c := p.process.owner.Command; c != "" {
			names = add(names, c)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return " (" + list(names) + ")"
}

func (j *Judge) reportAllocation(a *allocation) Allocation {
	out := Allocation{
		Holder: a.holder(), Since: collector.OnClock(a.since, j.node.now), SinceAtLeast: a.after.IsZero(),
		Shared: a.shared, Kept: a.kept, Contested: a.contested, Nominal: a.nominal,
		Utilization: a.utilization.pointer(), MemoryUsed: a.memory.pointer(),
	}
	if d, ok := a.idleFor(j.node.now); ok {
		out.Idle = new(d.Seconds())
	}
	if a.idleness.measured && !a.idleness.exempt && a.cost.priced {
		out.IdleCost, out.Currency = new(a.cost.total), a.cost.currency
	}
	for _, m := range a.faults {
		out.Faults = append(out.Faults, Fault{m.name, collector.OnClock(m.at, j.node.now)})
	}
	return out
}

func (st *device) unattributed(out []Process) []Process {
	for i := range st.processes {
		if p := &st.processes[i]; p.reason != attributed {
			x := p.report()
			x.Device = st.id
			out = append(out, x)
		}
	}
	return out
}

func (p *deviceProcess) report() Process {
	o := &p.process.owner
	x := Process{
		PID: p.pid, Command: o.Command, UID: o.UID, Job: o.Job, Utilization: p.utilization.pointer(),
		Namespace: p.process.pod.Namespace, Pod: p.process.pod.Name,
	}
	if !p.process.named {
		x.PodUID = o.PodUID
	}
	if p.reason != attributed {
		x.Reason = reasonNames[p.reason]
	}
	return x
}
