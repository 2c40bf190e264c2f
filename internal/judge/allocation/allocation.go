package allocation

import (
	"slices"
	"strings"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
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
	// since and after are those of podmap.Allocation, of the oldest id.
	since, after time.Time
	until        time.Time // when it was found to have ended
	shared       bool      // other pods use the device too, or may
	nominal      bool      // the pod may have been given another device
	kept         bool
	contested    bool
	unsure       bool // contested by claims: one of them may have administrative access
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

// Bounds of labels.
const (
	maxLabel  = 512 // bytes, as in podmap
	maxListed = 8   // containers or resources
)

// relabel updates the labels if they have changed.
func (a *allocation) relabel() {
	labels := []string{text(a.pod.Namespace), text(a.pod.Name), list(a.containers), list(a.resources)}
	if slices.Equal(labels, a.labels) {
		return
	}
	a.labels, a.cost.labels = labels, nil
	for i := range a.faults {
		a.faults[i].labels = append(a.labels[:len(a.labels):len(a.labels)], a.faults[i].name)
	}
}

func list(names []string) string {
	if len(names) > maxListed {
		names = append(slices.Clone(names[:maxListed]), "…")
	}
	return text(strings.Join(names, ","))
}

func text(s string) string {
	if len(s) > maxLabel {
		s = s[:maxLabel]
	}
	return strings.ToValidUTF8(s, "")
}

// firstActivity is the histogram of one resource.
type firstActivity struct {
	resource  string
	all       *collector.Distribution
	published collector.Distribution // the copy of all that Snapshots share
}

// maxResources limits the number of resources.
const maxResources = 256

// observeFirst counts the time up to the first activity of an allocation whose
// beginning was observed.
func (j *Judge) observeFirst(a *allocation) {
	if !a.idleness.last.IsZero() || a.idleness.firstUncertain || a.after.IsZero() {
		return
	}
	a.idleness.first = j.now
	f := j.firstOf(a.labels[len(a.labels)-1])
	f.all.Observe(age(a.since, j.now))
	f.published = f.all.Clone()
}

// firstOf returns the histogram of a resource. It exists from the first
// allocation on, so that its first observation is an increase.
func (j *Judge) firstOf(resource string) *firstActivity {
	find := func(name string) (int, bool) {
		return slices.BinarySearchFunc(j.firsts, name, func(f *firstActivity, name string) int { return strings.Compare(f.resource, name) })
	}
	at, ok := find(resource)
	if !ok && len(j.firsts) >= maxResources {
		resource = "other"
		at, ok = find(resource)
	}
	if !ok {
		f := &firstActivity{resource: resource, all: collector.NewDistribution(collector.AllocationFirstActivity, "", resource)}
		f.published = f.all.Clone()
		j.firsts = slices.Insert(j.firsts, at, f)
	}
	return j.firsts[at]
}
