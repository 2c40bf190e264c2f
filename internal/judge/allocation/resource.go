package allocation

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/accel-exporter/accel-exporter/podmap"
)

// summary has the resources of the node.
type summary struct {
	resources []*nodeResource // in order of their names
	byName    map[string]*nodeResource
}

// nodeResource is a resource by which devices have been allocated, or could be.
type nodeResource struct {
	name        string
	labels      []string
	plugin      bool // the kubelet allocates it: it is no DRA driver
	allocatable int
	allocated   int
	devices     int
}

// of returns the resource of that name.
func (s *summary) of(name string) *nodeResource {
	r := s.byName[name]
	if r == nil {
		r = &nodeResource{name: name, labels: []string{text(name)}}
		s.byName[name] = r
		s.resources = append(s.resources, r)
		slices.SortFunc(s.resources, func(a, b *nodeResource) int { return strings.Compare(a.name, b.name) })
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
			r := j.summary.of(a.Resource)
			r.plugin = true
			r.allocatable++
		}
	}
	if j.pods.AllocatableTime.IsZero() {
		return
	}
	published := j.markDRA()
	for _, st := range j.order {
		st.updateOffers(listed, j.round, j.pods.AllocatableTime)
	}
	for _, st := range j.order {
		if st.parts == 0 && len(st.offers) == 0 && !st.byDRA && (published || !j.mayBeDRA(st)) {
			j.siblings(st, listed)
		}
	}
}

// markDRA marks the devices of DRA drivers, and reports whether it is known which
// devices these drivers publish.
func (j *join) markDRA() (published bool) {
	for _, st := range j.order {
		st.byDRA = st.byDRA || st.claimed(j.round)
	}
	if j.options.Meta == nil {
		return false
	}
	devices := j.options.Meta().Devices
	for _, d := range devices {
		a := podmap.Allocation{Resource: d.Driver, Pool: d.Pool, DeviceID: d.Name, Ref: podmap.ParseDRA(d.Driver, d.Name)}
		id, _ := j.index.ResolveDRA(a, podmap.SliceDevice{UUID: d.UUID, PCI: d.PCI, Partition: d.ParentUUID != ""})
		if st := j.devices[id]; st != nil {
			st.byDRA = true
		}
	}
	return len(devices) > 0
}

// mayBeDRA reports whether a DRA driver may have the device: it has a device like it, or
// a claim names a device of its kind that is not known.
func (j *join) mayBeDRA(st *device) bool {
	return slices.ContainsFunc(j.claims, func(x unresolvedID) bool { return x.isKindOf(st) }) ||
		slices.ContainsFunc(j.order, func(o *device) bool { return o.byDRA && o.isLike(st) })
}

// updateOffers updates the resources under which the device is allocatable.
func (st *device) updateOffers(listed map[string]map[*device]bool, round uint64, at time.Time) {
	elsewhere := false
	for i := range st.offers {
		o := &st.offers[i]
		o.now = listed[o.resource][st]
		elsewhere = elsewhere || o.now
		switch {
		case o.now:
			o.missing, o.unlisted = time.Time{}, false
		case o.missing.IsZero():
			o.missing = at
		default:
			o.unlisted = o.unlisted || st.allocatedSince(o, round)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(listed)) {
		if listed[name][st] && !slices.ContainsFunc(st.offers, func(o offer) bool { return o.resource == name }) && len(st.offers) < maxListed {
			st.offers = append(st.offers, offer{resource: name, now: true, labels: []string{text(name)}})
			elsewhere = true
		}
	}
	// A device that is allocatable by another name is not missing under the
	// first. A device with partitions is allocated in parts, one of a DRA driver by
	// claims.
	st.offers = slices.DeleteFunc(st.offers, func(o offer) bool { return !o.now && (elsewhere || st.parts > 0 || st.byDRA) })
	st.byDRA = st.byDRA && !elsewhere // a device plugin has it now
}

// allocatedSince reports whether a pod got the device by a resource after the kubelet had
// ceased to list it: after a complete list in which the pod did not have it.
func (st *device) allocatedSince(o *offer, round uint64) bool {
	return slices.ContainsFunc(st.allocations, func(a *allocation) bool {
		return a.round == round && a.after.After(o.missing) && slices.Contains(a.resources, o.resource)
	})
}

// siblings adds the resource of devices like st, which is not allocatable.
func (j *join) siblings(st *device, listed map[string]map[*device]bool) {
	for _, name := range slices.Sorted(maps.Keys(listed)) {
		for o := range listed[name] {
			if o.isLike(st) {
				st.offers = append(st.offers, offer{resource: name, labels: []string{text(name)}, missing: j.pods.AllocatableTime})
				return
			}
		}
	}
}

// isLike reports whether two devices are of one model, and both whole or both partitions
// of one profile.
func (st *device) isLike(o *device) bool {
	return o.class == st.class && o.vendor == st.vendor && o.model == st.model && o.profile == st.profile && (o.parent == "") == (st.parent == "")
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
		j.summary.of(name).allocated = n
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
