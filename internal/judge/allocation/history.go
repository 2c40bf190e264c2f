package allocation

import (
	"slices"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/podmap"
)

// History has the allocations of the latest Snapshot and allocations that ended
// within the last hour.
type History struct {
	// Time is that of the Snapshot; zero before the first.
	Time time.Time
	// Complete: the kubelet's list is complete. An allocation that is not
	// among Records has ended, except as Unresolved and Omitted state.
	Complete bool
	Records  []Record
	// Unresolved are the pods with an allocated id that matches no device.
	Unresolved map[podmap.Pod]bool
	// Omitted are the devices with more allocations than Settings.MaxHolders.
	Omitted map[string]bool
}

// Record is the history of one allocation.
type Record struct {
	Pod        podmap.Pod
	Containers []string
	Resources  []string

	// Device is its ID, Parent that of the device it is a partition of.
	Device, Parent string
	Class          collector.Class
	Vendor, Model  string
	Index, Profile string
	PCI            string
	// Health and Action are state and action of the device's verdict, empty without one.
	Health, Action string

	// Since and After have the meaning of podmap.Allocation: if After is zero, the
	// allocation may be older than Since.
	Since, After time.Time
	// Until is when the allocation was found to have ended, zero while it
	// lasts.
	Until time.Time
	// First is the first activity if all the time before it was observed, and
	// Last the latest activity.
	First, Last time.Time
	// IdleKnown: it is known whether the device is idle. IdleSince is when the
	// idle period began; zero without one.
	IdleKnown bool
	IdleSince time.Time
	Shared    bool
	Faults    []Fault
}

// History returns the state after the latest Snapshot. It belongs to the
// caller.
func (j *Judge) History() *History {
	j.mu.Lock()
	defer j.mu.Unlock()
	out := &History{Time: j.node.now, Unresolved: map[podmap.Pod]bool{}, Omitted: map[string]bool{}}
	if j.node.pods == nil {
		return out
	}
	out.Complete = j.node.pods.State == podmap.StateFresh
	for _, x := range j.join.unresolved {
		out.Unresolved[podmap.Pod{Namespace: x.Namespace, Name: x.Pod}] = true
	}
	for _, st := range j.node.order {
		if st.omitted > 0 {
			out.Omitted[st.id] = true
		}
		for _, a := range st.allocations {
			out.Records = append(out.Records, a.record(j.node.now))
		}
		for _, a := range st.ended {
			out.Records = append(out.Records, a.record(j.node.now))
		}
	}
	return out
}

func (a *allocation) record(now time.Time) Record {
	st := a.device
	l := Record{
		Pod: a.pod, Containers: slices.Clone(a.containers), Resources: slices.Clone(a.resources),
		Device: st.id, Parent: st.parent, Class: st.class, Vendor: st.vendor, Model: st.model,
		Index: st.index, Profile: st.profile, PCI: st.pci, Health: st.verdict.State, Action: st.verdict.Action,
		Since: a.since, After: a.after, Until: a.until, First: a.idleness.first, Last: a.idleness.last, Shared: a.shared,
	}
	var idle time.Duration
	if idle, l.IdleKnown = a.idleFor(now); idle > 0 {
		l.IdleSince = a.idleness.from
	}
	for _, m := range a.faults {
		l.Faults = append(l.Faults, Fault{m.name, m.at})
	}
	return l
}

// Affects reports whether an event is a fault of the device, or of the parent
// of a partition.
func (l *Record) Affects(e *collector.Event) bool {
	if e.Partition != "" && (e.Partition == l.Device || l.Parent != "") {
		return e.Partition == l.Device
	}
	return e.Device == l.Device || l.Parent != "" && e.Device == l.Parent
}
