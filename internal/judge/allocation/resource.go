package allocation

import (
	"maps"
	"slices"
	"strings"

	"github.com/accel-exporter/accel-exporter/podmap"
)

// summary has the resources of the node.
type summary struct {
	resources []*resource // in order of their names
	byName    map[string]*resource
}

// resource is a resource by which devices have been allocated, or could be.
type resource struct {
	name        string
	labels      []string
	plugin      bool // the kubelet allocates it: it is no DRA driver
	allocatable int
	allocated   int
	devices     int
}

// resource returns the resource of that name.
func (s *summary) resource(name string) *resource {
	r := s.byName[name]
	if r == nil {
		r = &resource{name: name, labels: []string{text(name)}}
		s.byName[name] = r
		s.resources = append(s.resources, r)
		slices.SortFunc(s.resources, func(a, b *resource) int { return strings.Compare(a.name, b.name) })
	}
	return r
}

// offer takes the devices that the kubelet can allocate.
func (j *join) offer(counted map[idKey]bool) {
	for _, r := range j.summary.resources {
		r.allocatable, r.allocated, r.devices = 0, 0, 0
	}
	listed := map[string]map[*device]bool{}
	for i := range j.pods.Allocatable {
		a := &j.pods.Allocatable[i]
		for _, id := range a.IDs {
			key := idKey{a.Resource, id}
			f, known := j.ids[key]
			if !known {
				ref := podmap.ParseID(id)
				f = j.resolve(a.Resource, &ref, id)
			}
			if f.device == nil {
				counted[key] = true
				continue
			}
			f.device.replicas++
			if !counted[key] {
				f.device.offered[a.Resource]++
			}
			counted[key] = true
			if listed[a.Resource] == nil {
				listed[a.Resource] = map[*device]bool{}
			}
			listed[a.Resource][f.device] = true
			r := j.summary.resource(a.Resource)
			r.plugin = true
			r.allocatable++
		}
	}
	if j.pods.AllocatableTime.IsZero() {
		return
	}
	for _, st := range j.order {
		st.updateOffers(listed)
		if st.parts == 0 {
			j.siblings(st, listed)
		}
	}
}

// updateOffers updates the resources under which the device is allocatable.
func (st *device) updateOffers(listed map[string]map[*device]bool) {
	elsewhere := false
	for i := range st.offers {
		o := &st.offers[i]
		o.now = listed[o.resource][st]
		elsewhere = elsewhere || o.now
	}
	for _, name := range slices.Sorted(maps.Keys(listed)) {
		if listed[name][st] && !slices.ContainsFunc(st.offers, func(o offer) bool { return o.resource == name }) && len(st.offers) < maxListed {
			st.offers = append(st.offers, offer{name, true, []string{text(name)}})
			elsewhere = true
		}
	}
	// A device that is allocatable by another name is not missing under the
	// first. A device with partitions is allocated in parts.
	st.offers = slices.DeleteFunc(st.offers, func(o offer) bool { return !o.now && (elsewhere || st.parts > 0) })
}

// siblings adds the resource of devices like st if st is not allocatable.
func (j *join) siblings(st *device, listed map[string]map[*device]bool) {
	if len(st.offers) > 0 || st.claimed(j.round) {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(listed)) {
		for o := range listed[name] {
			if o.class == st.class && o.vendor == st.vendor && o.model == st.model && o.profile == st.profile && (o.parent == "") == (st.parent == "") {
				st.offers = append(st.offers, offer{name, false, []string{text(name)}})
				return
			}
		}
	}
}

// claimed reports whether the device is allocated by a claim. No device plugin
// needs to offer it then.
func (st *device) claimed(round uint64) bool {
	return slices.ContainsFunc(st.allocations, func(a *allocation) bool {
		return a.round == round && slices.ContainsFunc(a.resources, func(r string) bool { return !strings.Contains(r, "/") })
	})
}

// summarize counts by resource.
func (j *join) summarize() {
	for name, n := range j.allocated {
		j.summary.resource(name).allocated = n
	}
	for _, st := range j.order {
		for _, o := range st.offers {
			if r := j.summary.byName[o.resource]; r != nil {
				r.devices++
			}
		}
		for _, name := range st.resources {
			if r := j.summary.byName[name]; r != nil && !slices.ContainsFunc(st.offers, func(o offer) bool { return o.resource == name }) {
				r.devices++
			}
		}
	}
}
