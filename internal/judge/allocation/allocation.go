package allocation

import (
	"slices"
	"time"

	"github.com/accel-exporter/accel-exporter/podmap"
)

// allocation is a pod's container or containers on a device, by any number of
// the kubelet's ids.
type allocation struct {
	device     *device
	pod        podmap.Pod
	containers []string
	resources  []string
	ids        []string // of the kubelet
	labels     []string // of holderLabels
	// since and after are podmap.Allocation.Since and After of the oldest id.
	since, after time.Time
	until        time.Time // when it was found to have ended
	shared       bool      // other pods use the device too, or may
	nominal      bool      // the pod may have been given another device
	kept         bool
	contested    bool
	unsure       bool // contested by claims: one claim may have administrative access
	round        uint64

	// Of the latest sample: what was measured for the pod, and what its
	// processes did.
	utilization, memory quantity
	processes           processUse

	idleness idleness
	cost     cost
	faults   []faultTime
	energy   energy
}

// idleness is the activity of an allocation on its device, as far as it is known.
type idleness struct {
	settings Idle
	exempt   bool // never reported as idle
	state    state
	// from is when the current idle period began, zero without one.
	from time.Time
	// unknownFrom is when the state became unknown, zero while it is known.
	unknownFrom time.Time
	// unknownBefore is the time before which nothing is known.
	unknownBefore time.Time
	pending       float64 // seconds of the period that are not in total yet
	total         float64 // idle seconds
	measured      bool    // total is meaningful

	last  time.Time // activity
	first time.Time // activity, if all the time before it was observed
	// firstUncertain: part of the time up to the first activity was not
	// observed.
	firstUncertain bool
}

// cost is what the idle time of an allocation costs.
type cost struct {
	perHour  float64
	priced   bool
	total    float64
	currency string
	labels   []string
}

// energy is what a device used while an allocation had it alone. It is
// published until an hour after the end of the allocation.
type energy struct {
	known  bool
	joules float64
}

// inherit moves the energy of an allocation with the same series to this one.
func (e *energy) inherit(o *energy) {
	e.known, e.joules = e.known || o.known, e.joules+o.joules
	*o = energy{}
}

// faultTime is the latest time of a fault during an allocation.
type faultTime struct {
	name   string
	at     time.Time
	labels []string
}

// share is the pod's part of the device, 0 to 1.
func (a *allocation) share() float64 {
	offered, allocated := 0, 0
	for _, n := range a.device.offered {
		offered += n
	}
	for _, o := range a.device.allocations {
		allocated += len(o.ids)
	}
	if n := max(offered, allocated); n > 0 {
		return float64(len(a.ids)) / float64(n)
	}
	return 1
}

// alone reports whether the device is allocated to this pod only, and is surely
// the device that the pod was given. Processes outside every allocation may use
// it too.
func (a *allocation) alone() bool {
	st := a.device
	return len(st.allocations) == 1 && st.omitted == 0 && !a.nominal && !a.contested && (!a.shared || st.replicas > 0 && len(a.ids) >= st.replicas)
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

// relabel updates the labels if they have changed.
func (a *allocation) relabel() {
	labels := []string{text(a.pod.Namespace), text(a.pod.Name), list(a.containers), list(a.resources)}
	if slices.Equal(labels, a.labels) {
		return
	}
	a.labels, a.cost.labels = labels, nil
	for i := range a.faults {
		a.faults[i].labels = append(slices.Clip(a.labels), a.faults[i].name)
	}
}

// reset prepares an allocation for a new list.
func (a *allocation) reset() {
	a.containers, a.resources, a.ids = a.containers[:0], a.resources[:0], a.ids[:0]
	a.shared, a.nominal, a.kept, a.contested, a.unsure = false, false, false, false, false
}

func (a *allocation) holder() Holder {
	return Holder{a.pod.Namespace, a.pod.Name, slices.Clone(a.containers), slices.Clone(a.resources)}
}
