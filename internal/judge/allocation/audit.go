package allocation

import (
	"slices"
	"time"

	"github.com/accel-exporter/accel-exporter/podmap"
	"github.com/accel-exporter/accel-exporter/podmap/proc"
)

// suspicion is what is wrong with a process on a device.
type suspicion uint8

const (
	otherPod suspicion = iota
	hostProcess
	unknownPod
	hidden
	numberOfSuspicions
	unsuspicious
)

// suspicions are the values of the label reason.
var suspicions = [numberOfSuspicions]string{"other_pod", "host_process", "unknown_pod", "hidden"}

var suspicionLabels = func() (out [numberOfSuspicions][]string) {
	for i, s := range suspicions {
		out[i] = []string{s}
	}
	return out
}()

// ending is how long a process that has ended may still be listed on a device.
// One that is listed for longer, and is not in procfs, lives where that procfs
// does not reach.
const ending = 10 * time.Second

// suspect finds the holder of the device that the process belongs to, else
// what is wrong with it.
func (j *Judge) suspect(st *device, p *seen) {
	p.suspicion = unsuspicious
	switch owner := &p.process.owner; {
	case owner.Kind == proc.Gone:
		st.clean = false
		if j.now.Sub(p.process.since) < ending {
			return
		}
		p.suspicion = hidden
	case p.process.service():
		st.clean = false // what it does, it does for others
		return
	case owner.Kind == proc.Host:
		p.suspicion = hostProcess
	case owner.Kind == proc.Pod && p.process.named:
		pod := p.process.pod
		if h := st.holdOf(pod); h != nil {
			h.own.take(p)
			return
		}
		if j.holdsNear(st, pod) || j.join.nominal[pod] {
			return
		}
		// The kubelet is asked every few seconds, and not always knows all. A
		// pod gets no device after its start.
		if !j.pods.Confirmed.After(p.process.since) {
			st.clean = false
			return
		}
		p.suspicion = otherPod
	case owner.Kind == proc.Pod:
		st.clean = false
		if !p.process.missed {
			return
		}
		p.suspicion = unknownPod
	default:
		st.clean = false
		p.suspicion = hidden
	}
	if p.suspicion == otherPod || p.suspicion == hostProcess {
		st.strangers++
	}
	st.audit[p.suspicion]++
}

// holdOf returns the hold of a pod on the device.
func (st *device) holdOf(pod podmap.Pod) *hold {
	i, ok := slices.BinarySearchFunc(st.holds, pod, func(h *hold, pod podmap.Pod) int { return comparePods(h.pod, pod) })
	if !ok {
		return nil
	}
	return st.holds[i]
}

// holdsNear reports whether the pod holds the device that st is a partition
// of, or a partition of st.
func (j *Judge) holdsNear(st *device, pod podmap.Pod) bool {
	if p := j.devices[st.parent]; st.parent != "" && p != nil && p.holdOf(pod) != nil {
		return true
	}
	if st.parts == 0 {
		return false
	}
	return slices.ContainsFunc(j.order, func(o *device) bool { return o.parent == st.id && o.holdOf(pod) != nil })
}
