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
type hold struct {
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
	own                 own

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

	faults []mark
	jobs   jobs
}

// share is the part of the device that the holder has.
func (h *hold) share() float64 {
	offered, held := 0, 0
	for _, n := range h.device.offered {
		offered += n
	}
	for _, o := range h.device.holds {
		held += len(o.ids)
	}
	if n := max(offered, held); n > 0 {
		return float64(len(h.ids)) / float64(n)
	}
	return 1
}

// seconds is how long the hold has lasted.
func (h *hold) seconds(now time.Time) float64 { return max(0, now.Sub(h.since).Seconds()) }

// account takes the time since the Snapshot before to what the holder did in
// it.
func (j *Judge) account(h *hold) {
	now := j.now
	h.measure()
	switch h.state {
	case active:
		j.observeFirst(h)
		h.last, h.measured = now, true
		h.from, h.pending, h.blindFrom = time.Time{}, 0, time.Time{}
	case disputed:
		h.from, h.pending, h.blindFrom = time.Time{}, 0, time.Time{}
		h.barrier, h.unsure = now, h.unsure || h.last.IsZero()
	case idle:
		begin := latest(h.barrier, h.device.knownFrom, h.last)
		counted := latest(j.before, begin)
		if h.from.IsZero() {
			h.from, counted = begin, begin
		} else if !h.blindFrom.IsZero() {
			counted = now // nobody saw what was in between
		}
		h.blindFrom, h.measured = time.Time{}, true
		h.pending += max(0, now.Sub(counted).Seconds())
		h.settle(now)
	case blind:
		h.unsure = h.unsure || h.last.IsZero()
		if h.blindFrom.IsZero() {
			h.blindFrom = latest(j.before, h.since)
		}
		if h.from.IsZero() || now.Sub(h.blindFrom) > bridge {
			h.from, h.pending, h.barrier = time.Time{}, 0, now
		}
	}
}

// settle counts the stretch, once it is long enough to be one.
func (h *hold) settle(now time.Time) {
	if h.never {
		h.pending = 0
	}
	if now.Sub(h.from) < h.idle.Grace {
		return
	}
	h.total += h.pending
	h.cost += h.pending * h.price * h.share() / 3600
	h.pending = 0
}

// idleFor returns how long the stretch of idleness has lasted, and false where
// that is not known.
func (h *hold) idleFor(now time.Time) (time.Duration, bool) {
	if h.never {
		return 0, false
	}
	switch h.state {
	case active:
		return 0, true
	case idle:
		if d := now.Sub(h.from); d >= h.idle.Grace {
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
func (h *hold) relabel() {
	labels := []string{text(h.pod.Namespace), text(h.pod.Name), list(h.containers), list(h.resources)}
	if slices.Equal(labels, h.labels) {
		return
	}
	h.labels, h.costs, h.jobs.labels = labels, nil, [len(jobEngines)][]string{}
	for i := range h.faults {
		h.faults[i].labels = append(h.labels[:len(h.labels):len(h.labels)], h.faults[i].name)
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
	resource string
	all      *collector.Distribution
	shown    collector.Distribution // what Snapshots share of all
}

// maxResources bounds the resources that are remembered.
const maxResources = 256

// observeFirst counts the time up to the first activity of a hold whose
// beginning was seen.
func (j *Judge) observeFirst(h *hold) {
	if !h.last.IsZero() || h.unsure || h.after.IsZero() {
		return
	}
	h.first = j.now
	f := j.firstOf(h.labels[len(h.labels)-1])
	f.all.Observe(h.seconds(j.now))
	f.shown = f.all.Clone()
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
		f.shown = f.all.Clone()
		j.firsts = slices.Insert(j.firsts, at, f)
	}
	return j.firsts[at]
}
