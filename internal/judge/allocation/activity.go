package allocation

import (
	"slices"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/podmap/proc"
)

// activity finds what the devices do for their allocations.
type activity struct {
	*node
	join   *join
	owners owners
	uses   podUses
}

// update takes the latest sample of a device.
func (w *activity) update(st *device, d *collector.Device) {
	st.readUse(d, w.now)
	w.attribute(st, d)
	st.chargeEnergy()
	for _, a := range st.allocations {
		a.account(w.now, w.previous)
	}
	st.fit()
}

// maxProcesses is the most processes of a device that are attributed.
const maxProcesses = 512

// listProcesses merges the processes of the device: a source lists a process
// that computes and draws twice. It reports whether they are all known.
func (w *activity) listProcesses(st *device, d *collector.Device) bool {
	st.processes = st.processes[:0]
	if d.Clients == nil || !st.up || w.owners.proc == nil || len(d.Clients) > 2*maxProcesses {
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
func (w *activity) attribute(st *device, d *collector.Device) {
	st.outsiders, st.processesAttributed, st.unattributedBy, st.listed = 0, true, [numberOfReasons]int{}, processUse{}
	for _, a := range st.allocations {
		a.processes = processUse{}
	}
	if st.processesKnown = w.listProcesses(st, d); !st.processesKnown {
		st.processes = st.processes[:0]
		return
	}
	for i := range st.processes {
		p := &st.processes[i]
		p.process = w.owners.of(p.pid, w.now)
		st.listed.take(p)
		w.classify(st, p)
	}
}

// ending is how long a process that has ended may still be listed on a device.
// A process that is listed for longer, and is not in procfs, runs in a namespace
// that procfs does not show.
const ending = 10 * time.Second

// classify finds the allocation of the device that the process belongs to, or
// else the reason why there is none.
func (w *activity) classify(st *device, p *deviceProcess) {
	p.reason = attributed
	switch owner := &p.process.owner; {
	case owner.Kind == proc.Gone:
		st.processesAttributed = false
		if w.now.Sub(p.process.since) < ending {
			return
		}
		p.reason = hidden
	case p.process.service():
		st.processesAttributed = false // it works for other processes
		return
	case owner.Kind == proc.Host:
		p.reason = hostProcess
	case owner.Kind == proc.Pod && p.process.named:
		pod := p.process.pod
		if a := st.allocationOf(pod); a != nil {
			a.processes.take(p)
			return
		}
		if w.allocatedNear(st, pod) || w.join.nominal[pod] {
			return
		}
		// The list of allocations is some seconds old, and may be incomplete. A
		// pod gets no device after its start.
		if !w.pods.Confirmed.After(p.process.since) {
			st.processesAttributed = false
			return
		}
		p.reason = otherPod
	case owner.Kind == proc.Pod:
		st.processesAttributed = false
		if !p.process.unlisted {
			return
		}
		p.reason = unknownPod
	default:
		st.processesAttributed = false
		p.reason = hidden
	}
	if p.reason == otherPod || p.reason == hostProcess {
		st.outsiders++
	}
	st.unattributedBy[p.reason]++
}
