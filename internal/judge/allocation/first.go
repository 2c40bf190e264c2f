package allocation

import (
	"slices"
	"strings"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
)

// firstActivity is the histogram of one resource.
type firstActivity struct {
	resource  string
	all       *collector.Distribution
	published collector.Distribution // the copy of all that Snapshots share
}

// firsts are the histograms of all resources, in order of their names.
type firsts []*firstActivity

// observe counts the time up to the first activity of an allocation whose
// beginning was observed.
func (x *firsts) observe(a *allocation, now time.Time) {
	if !a.idleness.last.IsZero() || a.idleness.firstUncertain || a.after.IsZero() {
		return
	}
	a.idleness.first = now
	f := x.of(a.labels[len(a.labels)-1])
	f.all.Observe(age(a.since, now))
	f.published = f.all.Clone()
}

// of returns the histogram of a resource. It exists from the first
// allocation on, so that its first observation is an increase.
func (x *firsts) of(resource string) *firstActivity {
	at, ok := slices.BinarySearchFunc(*x, resource, func(f *firstActivity, name string) int { return strings.Compare(f.resource, name) })
	if !ok {
		f := &firstActivity{resource: resource, all: collector.NewDistribution(collector.AllocationFirstActivity, "", resource)}
		f.published = f.all.Clone()
		*x = slices.Insert(*x, at, f)
	}
	return (*x)[at]
}
