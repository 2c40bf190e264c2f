package allocation

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/accel-exporter/accel-exporter/podmap"
)

// idKey is an id under the name of a resource.
type idKey struct{ resource, id string }

// match is the result of a look-up.
type match struct {
	device *device
	how    podmap.How
}

// join finds the devices of the allocations that the kubelet lists. Its fields
// are the result of the latest Map.
type join struct {
	*node
	options  *Options
	resolver *podmap.Resolver
	index    *podmap.Index
	stale    bool          // index or the allocations are of before a change
	status   podmap.Status // of the Map's Watcher
	summary  summary

	// ids are all allocated or allocatable ids with their devices.
	ids       map[idKey]match
	allocated map[string]int // ids by resource
	nominal   map[podmap.Pod]bool
	// unresolved are the allocations whose id matches no device.
	unresolved []Unresolved
	// accelerators is how many of them are of a resource that names a kind of
	// device that this node has.
	accelerators int
	// candidates are the ids among them that may mean a device of this
	// machine.
	candidates []unresolvedID
	// ambiguous are the allocations whose id matches several partitions, and
	// placed the partitions that their names were found to mean.
	ambiguous []*podmap.Allocation
	placed    map[idKey]*device
	listed    int // allocations with series
	omitted   int
	beside    int // allocations of claims with administrative access
	// claims are the names in claims that match no device.
	claims []unresolvedID
}

func newJoin(n *node, o *Options) *join {
	return &join{node: n, options: o, placed: map[idKey]*device{}, summary: summary{byName: map[string]*nodeResource{}}}
}

// apply takes new settings. All allocations are found again.
func (j *join) apply(s Settings) {
	j.resolver = &podmap.Resolver{Aliases: s.Aliases, Generic: s.Generic, Ignore: s.Ignore}
	j.stale, j.index = true, nil
}

// follow takes the latest Map and joins it with the devices if either has
// changed. It reports whether the kubelet should be called again.
func (j *join) follow(changed bool) bool {
	m := noMap
	if j.options.Map != nil {
		if latest := j.options.Map(); latest != nil {
			m = latest
		}
	}
	first := j.pods == nil
	if changed || j.index == nil {
		known := make([]podmap.Known, 0, len(j.order))
		for _, d := range j.order {
			known = append(known, d.known())
		}
		j.index = j.resolver.Index(known)
		j.ids = map[idKey]match{} // the matches were among other devices
		j.stale = true
	}
	if m != j.pods || j.stale {
		if m != j.pods && j.options.Status != nil {
			j.status = j.options.Status()
		}
		j.pods, j.stale = m, false
		j.rejoin()
	}
	return changed && !first
}

// noMap is the Map without a kubelet.
var noMap = &podmap.Map{State: podmap.StateAbsent}

// resolve finds the device of an id.
func (j *join) resolve(resource string, ref *podmap.Ref, raw string) match {
	key := idKey{resource, raw}
	f, ok := j.ids[key]
	if !ok {
		id, how := j.index.Resolve(resource, *ref)
		f = match{j.devices[id], how}
		if how == podmap.HowIndex && !j.numbered(resource) {
			f = match{how: podmap.HowUnknown}
		}
		j.ids[key] = f
	}
	return f
}

// numbered reports whether the ids of a resource can be the indexes of devices:
// the kubelet reports the allocatable ids, and they are the numbers from 0 on.
func (j *join) numbered(resource string) bool {
	i := slices.IndexFunc(j.pods.Allocatable, func(a podmap.Allocatable) bool { return a.Resource == resource })
	if i < 0 {
		return false
	}
	ids := j.pods.Allocatable[i].IDs
	return !slices.ContainsFunc(ids, func(id string) bool {
		n, err := strconv.Atoi(podmap.ParseID(id).Index)
		return err != nil || n >= len(ids)
	})
}

// find finds the device of an allocation: by what its driver published, else
// by the id alone.
func (j *join) find(p *podmap.Allocation) match {
	if p.Claim == "" || j.options.Claimed == nil {
		return j.resolve(p.Resource, &p.Ref, p.DeviceID)
	}
	// The driver may have published something else since the last look-up.
	id, how := j.index.ResolveDRA(*p, j.options.Claimed(p.Resource, p.Pool, p.DeviceID))
	f := match{j.devices[id], how}
	j.ids[idKey{p.Resource, p.DeviceID}] = f
	return f
}

// rejoin updates the allocations from the Map.
func (j *join) rejoin() {
	j.allocated, j.nominal = map[string]int{}, map[podmap.Pod]bool{}
	j.unresolved, j.candidates, j.claims, j.ambiguous = nil, nil, nil, j.ambiguous[:0]
	j.listed, j.omitted, j.accelerators, j.beside = 0, 0, 0, 0
	// The meaning of a number depends on the others.
	maps.DeleteFunc(j.ids, func(_ idKey, f match) bool { return f.how == podmap.HowIndex || f.how == podmap.HowUnknown })
	for _, st := range j.order {
		st.omitted, st.replicas = 0, 0
		clear(st.offered)
		for _, a := range st.allocations {
			a.reset()
		}
	}
	counted := make(map[idKey]bool, len(j.pods.Allocations))
	for i := range j.pods.Allocations {
		p := &j.pods.Allocations[i]
		if p.Admin {
			j.beside++ // it uses the device beside its holder
			continue
		}
		f := j.find(p)
		if f.device == nil && !strings.Contains(p.Resource, "/") {
			j.claims = append(j.claims, unresolvedID{p.Resource, &p.Ref})
		}
		if p.Ref.Form == podmap.FormProfile && f.how == podmap.HowAmbiguous {
			j.ambiguous = append(j.ambiguous, p)
			continue
		}
		j.enter(p, f, counted)
	}
	j.eliminate(counted)
	j.offer(counted)
	for _, st := range j.order {
		j.settle(st)
	}
	maps.DeleteFunc(j.ids, func(key idKey, _ match) bool { return !counted[key] }) // of a list before
	j.summarize()
}

// enter takes one allocation of the Map, and the device of its id.
func (j *join) enter(p *podmap.Allocation, f match, counted map[idKey]bool) {
	key := idKey{p.Resource, p.DeviceID}
	again := counted[key]
	counted[key] = true
	if p.Ref.Nominal {
		j.nominal[p.Pod] = true
	}
	st := f.device
	if st == nil {
		// A kept allocation without a device has ended with its partition.
		if f.how != podmap.HowIgnored && !p.Kept {
			j.unresolved = append(j.unresolved, Unresolved{Resource: p.Resource, ID: p.DeviceID, How: f.how, Namespace: p.Pod.Namespace, Pod: p.Pod.Name})
			x := unresolvedID{p.Resource, &p.Ref}
			if j.isMissing(x) {
				j.accelerators++
			}
			if !x.isGone(f.how) {
				j.candidates = append(j.candidates, x)
			}
		}
		return
	}
	if !again {
		j.allocated[p.Resource]++
		st.offered[p.Resource]++
	}
	a := st.allocationOf(p.Pod)
	if a == nil || a.round != j.round {
		if j.listed >= j.settings.MaxHolders {
			j.omitted++
			st.omitted++
			return
		}
		j.listed++
		if a == nil {
			a = st.begin(p, j.previous)
		}
		a.round, a.since, a.after = j.round, p.Since, p.After
	}
	if p.Since.Before(a.since) {
		a.since, a.after = p.Since, p.After
	}
	a.containers = add(a.containers, p.Containers...)
	a.resources = add(a.resources, p.Resource)
	a.ids = add(a.ids, p.DeviceID)
	a.shared, a.nominal = a.shared || p.Shared, a.nominal || p.Ref.Nominal
	a.kept, a.contested, a.unsure = a.kept || p.Kept, a.contested || p.Contested, a.unsure || p.Contested && p.Claim != ""
}

// settle ends the allocations of a device that are not listed any more and
// updates the others.
func (j *join) settle(st *device) {
	current := st.allocations[:0]
	for _, a := range st.allocations {
		if a.round != j.round {
			st.end(a, j.now)
			continue
		}
		current = append(current, a)
		a.relabel()
		j.configure(a)
		st.inherit(a)
	}
	clear(st.allocations[len(current):])
	st.allocations = current
	var resources []string
	for _, a := range current {
		resources = add(resources, a.resources...)
	}
	if !slices.Equal(resources, st.resources) {
		st.resources = resources // callers keep the previous list
	}
}

// configure applies the settings to an allocation. A new currency starts the
// cost from zero.
func (j *join) configure(a *allocation) {
	i, c, currency := &a.idleness, &a.cost, j.settings.Currency
	i.settings, i.exempt = j.settings.idleOf(a.resources)
	c.perHour, c.priced = j.settings.priceOf(a.device.kind(), a.resources)
	if c.currency != currency {
		c.total, c.currency, c.labels = 0, currency, nil
	}
	if c.labels == nil {
		c.labels = append(slices.Clip(a.labels), currency)
	}
}

// holders returns the number of pods that the device is allocated to, and
// false if it is unknown.
func (j *join) holders(st *device) (int, bool) {
	n := len(st.allocations) + st.omitted
	return n, n > 0 || st.parts == 0 && j.pods.State == podmap.StateFresh && !j.mayBeAllocated(st)
}
