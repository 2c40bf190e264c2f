package allocation

import (
	"slices"
	"time"

	"github.com/accel-exporter/accel-exporter/podmap"
	"github.com/accel-exporter/accel-exporter/podmap/proc"
)

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

// ending is how long a process that has ended may still be listed on a device.
// One that is listed for longer, and is not in procfs, runs in a namespace
// that procfs does not show.
const ending = 10 * time.Second

// classify finds the allocation of the device that the process belongs to, or
// else the reason why there is none.
func (j *Judge) classify(st *device, p *deviceProcess) {
	p.reason = attributed
	switch owner := &p.process.owner; {
	case owner.Kind == proc.Gone:
		st.processesAttributed = false
		if j.now.Sub(p.process.since) < ending {
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
		if j.allocatedNear(st, pod) || j.join.nominal[pod] {
			return
		}
		// The list of allocations is some seconds old, and may be incomplete. A
		// pod gets no device after its start.
		if !j.pods.Confirmed.After(p.process.since) {
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

// allocationOf returns the pod's allocation of the device, or nil.
func (st *device) allocationOf(pod podmap.Pod) *allocation {
	i, ok := slices.BinarySearchFunc(st.allocations, pod, func(a *allocation, pod podmap.Pod) int { return comparePods(a.pod, pod) })
	if !ok {
		return nil
	}
	return st.allocations[i]
}

// allocatedNear reports whether the pod has the parent of st, or a partition
// of st.
func (j *Judge) allocatedNear(st *device, pod podmap.Pod) bool {
	if p := j.devices[st.parent]; st.parent != "" && p != nil && p.allocationOf(pod) != nil {
		return true
	}
	if st.parts == 0 {
		return false
	}
	return slices.ContainsFunc(j.order, func(o *device) bool { return o.parent == st.id && o.allocationOf(pod) != nil })
}
