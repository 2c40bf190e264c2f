package allocation

import (
	"slices"
	"strings"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/podmap"
)

// bridge is how long a gap in what is known of a device's use may be without
// ending a stretch of idleness. The gap itself is not idle time.
const bridge = time.Minute

// hold is one pod's hold on one device, by however many ids and containers.
type allocation struct {
	device     *device
	pod        podmap.Pod
	containers []string
	resources  []string
	ids        []string // of the kubelet
	labels     []string // of holderLabels
	// Since and after are those of podmap.Holder, of the oldest id.
	since, after time.Time
	until        time.Time // when it was found to have ended
	shared       bool      // others may hold the device too, or do
	nominal      bool      // the pod may have been given another device
	kept         bool
	contested    bool
	round        uint64

	// What was measured for the holder; has in this order.
	utilization, memory float64
	has                 [2]bool
	own                 processUse

	// Idleness.
	state     state
	from      time.Time // when the stretch began, zero while there is none
	blindFrom time.Time
	barrier   time.Time // nothing is known of the time before
	pending   float64   // seconds of the stretch that are not in total yet
	total     float64
	last      time.Time // activity
	first     time.Time // activity, where the time before it was seen
	measured  bool      // total means something
	unsure    bool      // the time up to the first activity was not all seen
	idle      Idle
	never     bool
	price     float64
	priced    bool
	cost      float64
	currency  string
	costs     []string // labels of the cost

	faults []faultTime
	totals processTotals
}

// share is the part of the device that the holder has.
func (a *allocation) share() float64 {
	offered, held := 0, 0
	for _, n := range a.device.offered {
		offered += n
	}
	for _, o := range a.device.allocations {
		held += len(o.ids)
	}
	if n := max(offered, held); n > 0 {
		return float64(len(a.ids)) / float64(n)
	}
	return 1
}

// seconds is how long the hold has lasted.
func (a *allocation) seconds(now time.Time) float64 { return max(0, now.Sub(a.since).Seconds()) }

// account takes the time since the Snapshot before to what the holder did in
// it.
func (j *Judge) account(a *allocation) {
	now := j.now
	a.measure()
	switch a.state {
	case active:
		j.observeFirst(a)
		a.last, a.measured = now, true
		a.from, a.pending, a.blindFrom = time.Time{}, 0, time.Time{}
	case unattributable:
		a.from, a.pending, a.blindFrom = time.Time{}, 0, time.Time{}
		a.barrier, a.unsure = now, a.unsure || a.last.IsZero()
	case idle:
		begin := latest(a.barrier, a.device.knownFrom, a.last)
		counted := latest(j.previous, begin)
		if a.from.IsZero() {
			a.from, counted = begin, begin
		} else if !a.blindFrom.IsZero() {
			counted = now // nobody saw what was in between
		}
		a.blindFrom, a.measured = time.Time{}, true
		a.pending += max(0, now.Sub(counted).Seconds())
		a.settle(now)
	case blind:
		a.unsure = a.unsure || a.last.IsZero()
		if a.blindFrom.IsZero() {
			a.blindFrom = latest(j.previous, a.since)
		}
		if a.from.IsZero() || now.Sub(a.blindFrom) > bridge {
			a.from, a.pending, a.barrier = time.Time{}, 0, now
		}
	}
}

// settle counts the stretch, once it is long enough to be one.
func (a *allocation) settle(now time.Time) {
	if a.never {
		a.pending = 0
	}
	if now.Sub(a.from) < a.idle.Grace {
		return
	}
	a.total += a.pending
	a.cost += a.pending * a.price * a.share() / 3600
	a.pending = 0
}

// idleFor returns how long the stretch of idleness has lasted, and false where
// that is not known.
func (a *allocation) idleFor(now time.Time) (time.Duration, bool) {
	if a.never {
		return 0, false
	}
	switch a.state {
	case active:
		return 0, true
	case idle:
		if d := now.Sub(a.from); d >= a.idle.Grace {
			return d, true
		}
		return 0, true
	}
	return 0, false
}

// latest returns the last of some times.
func latest(times ...time.Time) time.Time {
	return slices.MaxFunc(times, time.Time.Compare)
}

// Bounds of labels.
const (
	maxLabel  = 512 // bytes, as long as podmap has them
	maxListed = 8   // containers or resources
)

// relabel makes the labels anew, where they have changed.
func (a *allocation) relabel() {
	labels := []string{text(a.pod.Namespace), text(a.pod.Name), list(a.containers), list(a.resources)}
	if slices.Equal(labels, a.labels) {
		return
	}
	a.labels, a.costs, a.totals.labels = labels, nil, [len(accountingEngines)][]string{}
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
	published collector.Distribution // what Snapshots share of all
}

// maxResources bounds the resources that are remembered.
const maxResources = 256

// observeFirst counts the time up to the first activity of a hold whose
// beginning was seen.
func (j *Judge) observeFirst(a *allocation) {
	if !a.last.IsZero() || a.unsure || a.after.IsZero() {
		return
	}
	a.first = j.now
	f := j.firstOf(a.labels[len(a.labels)-1])
	f.all.Observe(a.seconds(j.now))
	f.published = f.all.Clone()
}

// firstOf returns the histogram of a resource. It is there from the first
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
