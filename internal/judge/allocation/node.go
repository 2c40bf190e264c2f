package allocation

import (
	"slices"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/podmap"
)

// node has the devices and pods of the node after the latest Snapshot.
type node struct {
	settings Settings
	now      time.Time // of the latest Snapshot, and of the one before
	previous time.Time
	round    uint64
	devices  map[string]*device
	order    []*device // of the latest Snapshot
	pods     *podmap.Map
	// released: a source has released its devices.
	released bool
}

// updateDevices takes the devices of a Snapshot and reports whether devices or
// their names have changed.
func (n *node) updateDevices(s *collector.Snapshot) (changed bool) {
	n.order = n.order[:0]
	for i := range s.Devices {
		d := &s.Devices[i]
		if d.Class == "" || d.Class == collector.Switch {
			continue // known by an event only, or nothing that is given out
		}
		st := n.devices[d.ID]
		if st != nil && st.round == n.round {
			continue // a second source has a device of that name
		}
		if st == nil {
			st = &device{id: d.ID, offered: map[string]int{}}
			n.devices[d.ID] = st
			changed = true
		}
		st.round, st.at, st.parts = n.round, i, 0
		changed = st.identify(d) || changed
		n.order = append(n.order, st)
	}
	for _, st := range n.order {
		if p := n.devices[st.parent]; p != nil && st.parent != "" {
			p.parts++
		}
	}
	if len(n.devices) == len(n.order) {
		return changed
	}
	for id, st := range n.devices {
		if st.round != n.round {
			delete(n.devices, id)
		}
	}
	return true
}

// affected returns the devices whose allocations an event affects: the
// partition that it is attributed to, else the device and all its partitions.
func (n *node) affected(e *collector.Event) []*device {
	if st := n.devices[e.Partition]; e.Partition != "" && st != nil {
		return []*device{st}
	}
	var out []*device
	for _, st := range n.order {
		if st.id == e.Device || st.parent == e.Device && st.parent != "" {
			out = append(out, st)
		}
	}
	return out
}

// event takes an event, and reports whether the kubelet may have new
// information since.
func (n *node) event(e *collector.Event) bool {
	if e.Past {
		return false // the allocations of that time are unknown
	}
	moves := slices.Contains(reshaping, e.Kind)
	name := FaultName(e)
	if name == "" || len(e.Witnesses) > 0 {
		return moves
	}
	for _, st := range n.affected(e) {
		if st.recordFault(name, e.Time) || len(st.pending) >= maxPending {
			continue
		}
		st.pending = append(st.pending, Fault{name, e.Time})
	}
	return moves
}

// allocatedNear reports whether the pod has the parent of st, or a partition
// of st.
func (n *node) allocatedNear(st *device, pod podmap.Pod) bool {
	if p := n.devices[st.parent]; st.parent != "" && p != nil && p.allocationOf(pod) != nil {
		return true
	}
	if st.parts == 0 {
		return false
	}
	return slices.ContainsFunc(n.order, func(o *device) bool { return o.parent == st.id && o.allocationOf(pod) != nil })
}

// reshaping are the events after which devices or their allocations may
// change.
var reshaping = []collector.EventKind{
	collector.EventMIGConfig, collector.EventReconfiguration, collector.EventDriverLoaded,
	collector.EventUnavailable, collector.EventBusLoss, collector.EventXid,
}
