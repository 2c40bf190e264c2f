package allocation

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/accel-exporter/accel-exporter/podmap"
)

// idKey is an id under the name of a resource.
type idKey struct{ resource, id string }

// found is the result of a look-up.
type found struct {
	device *device
	how    podmap.How
}

// join is the result of the latest Map.
type join struct {
	// ids are all allocated or allocatable ids with their devices.
	ids       map[idKey]found
	how       map[podmap.How]int
	allocated map[string]int // ids by resource
	nominal   map[podmap.Pod]bool
	// unresolved are the allocations whose id matches no device.
	unresolved []Unresolved
	// accelerators is how many of them are of a resource that is an
	// accelerator by its name.
	accelerators int
	// candidates are the ids among them that may mean a device of this
	// machine.
	candidates []unresolvedID
	// ambiguous are the allocations whose id matches several partitions, and
	// placed the partitions that their names were found to mean.
	ambiguous []*podmap.Allocation
	placed    map[idKey]*device
	holders   int
	omitted   int
	beside    int // allocations of claims with administrative access
}

// resolve finds the device of an id.
func (j *Judge) resolve(resource string, ref *podmap.Ref, raw string) found {
	key := idKey{resource, raw}
	f, ok := j.join.ids[key]
	if !ok {
		id, how := j.index.Resolve(resource, *ref)
		f = found{j.devices[id], how}
		if how == podmap.HowIndex && !j.numbered(resource) {
			f = found{how: podmap.HowUnknown}
		}
		j.join.ids[key] = f
	}
	return f
}

// numbered reports whether the ids of a resource can be the indexes of devices:
// the allocatable ones are the numbers from 0 on, or are not known.
func (j *Judge) numbered(resource string) bool {
	i := slices.IndexFunc(j.pods.Allocatable, func(a podmap.Allocatable) bool { return a.Resource == resource })
	if i < 0 {
		return true
	}
	ids := j.pods.Allocatable[i].IDs
	return !slices.ContainsFunc(ids, func(id string) bool {
		n, err := strconv.Atoi(podmap.ParseID(id).Index)
		return err != nil || n >= len(ids)
	})
}

// find finds the device of an allocation: by what its driver published, else
// by the id alone.
func (j *Judge) find(p *podmap.Allocation) found {
	if p.Claim == "" || j.options.Claimed == nil {
		return j.resolve(p.Resource, &p.Ref, p.DeviceID)
	}
	// The driver may have published something else since the last look-up.
	id, how := j.index.ResolveDRA(*p, j.options.Claimed(p.Resource, p.Pool, p.DeviceID))
	f := found{j.devices[id], how}
	j.join.ids[idKey{p.Resource, p.DeviceID}] = f
	return f
}

// rejoin updates the allocations from the Map.
func (j *Judge) rejoin() {
	x := &j.join
	x.allocated, x.nominal = map[string]int{}, map[podmap.Pod]bool{}
	x.unresolved, x.candidates, x.ambiguous = nil, nil, x.ambiguous[:0]
	x.holders, x.omitted, x.accelerators, x.beside = 0, 0, 0, 0
	// The meaning of a number depends on the others.
	maps.DeleteFunc(x.ids, func(_ idKey, f found) bool { return f.how == podmap.HowIndex || f.how == podmap.HowUnknown })
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
			x.beside++ // it uses the device beside its holder
			continue
		}
		f := j.find(p)
		if p.Ref.Form == podmap.FormProfile && f.how == podmap.HowAmbiguous {
			x.ambiguous = append(x.ambiguous, p)
			continue
		}
		j.enter(p, f, counted)
	}
	eliminated := j.eliminate(counted)
	j.offer(counted)
	for _, st := range j.order {
		j.settle(st)
	}
	x.how = make(map[podmap.How]int, len(x.how))
	for key := range x.ids {
		if counted[key] {
			x.how[x.ids[key].how]++
		} else {
			delete(x.ids, key) // of a list before
		}
	}
	x.how[podmap.HowAmbiguous] -= eliminated
	x.how[podmap.HowProfile] += eliminated
	j.summarize()
}

// reset prepares an allocation for a new list.
func (a *allocation) reset() {
	a.containers, a.resources, a.ids = a.containers[:0], a.resources[:0], a.ids[:0]
	a.shared, a.nominal, a.kept, a.contested, a.unsure = false, false, false, false, false
}

// enter takes one allocation of the Map, and the device of its id.
func (j *Judge) enter(p *podmap.Allocation, f found, counted map[idKey]bool) {
	x := &j.join
	key := idKey{p.Resource, p.DeviceID}
	again := counted[key]
	counted[key] = true
	if p.Ref.Nominal {
		x.nominal[p.Pod] = true
	}
	st := f.device
	if st == nil {
		if f.how != podmap.HowIgnored {
			x.unresolved = append(x.unresolved, Unresolved{Resource: p.Resource, ID: p.DeviceID, How: f.how, Namespace: p.Pod.Namespace, Pod: p.Pod.Name})
			// A network card is named by its PCI address, also under nvidia.com.
			if isAccelerator(p.Resource) && p.Ref.Form != podmap.FormPCI {
				x.accelerators++
			}
			if !isGone(p.Ref.Form, f.how) {
				x.candidates = append(x.candidates, unresolvedID{p.Resource, &p.Ref})
			}
		}
		return
	}
	if !again {
		x.allocated[p.Resource]++
		st.offered[p.Resource]++
	}
	a := st.allocationOf(p.Pod)
	if a == nil || a.round != j.round {
		if x.holders >= j.settings.MaxHolders {
			x.omitted++
			st.omitted++
			return
		}
		x.holders++
		if a == nil {
			a = j.begin(st, p)
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

// begin creates an allocation.
func (j *Judge) begin(st *device, p *podmap.Allocation) *allocation {
	a := &allocation{device: st, pod: p.Pod, since: p.Since, idleness: idleness{unknownBefore: latest(p.Since, j.previous)}}
	at, _ := slices.BinarySearchFunc(st.allocations, p.Pod, func(a *allocation, pod podmap.Pod) int { return comparePods(a.pod, pod) })
	st.allocations = slices.Insert(st.allocations, at, a)
	return a
}

// settle ends the allocations of a device that are not listed any more and
// updates the others.
func (j *Judge) settle(st *device) {
	current := st.allocations[:0]
	for _, a := range st.allocations {
		if a.round != j.round {
			st.end(a, j.now)
			continue
		}
		current = append(current, a)
		a.relabel()
		j.configure(a)
		if !a.after.IsZero() {
			j.firstOf(a.labels[len(a.labels)-1])
		}
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

func comparePods(a, b podmap.Pod) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}

// configure applies the settings to an allocation. A new currency starts the
// cost from zero.
func (j *Judge) configure(a *allocation) {
	i, c, currency := &a.idleness, &a.cost, j.settings.Currency
	i.settings, i.exempt = j.settings.idleOf(a.resources)
	c.perHour, c.priced = j.settings.priceOf(a.device, a.resources)
	if c.currency != currency {
		c.total, c.currency, c.labels = 0, currency, nil
	}
	if c.labels == nil {
		c.labels = append(a.labels[:len(a.labels):len(a.labels)], currency)
	}
}

// add adds to a sorted list what is not in it.
func add(list []string, more ...string) []string {
	for _, s := range more {
		if at, ok := slices.BinarySearch(list, s); !ok {
			list = slices.Insert(list, at, s)
		}
	}
	return list
}

// Resources returns the names of the resources by which the device is
// allocated, nil if it is not, or if that is unknown. The list must not be
// changed.
func (j *Judge) Resources(device string) []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	if st := j.devices[device]; st != nil {
		return st.resources
	}
	return nil
}

// age is the time from t to now, in seconds.
func age(t, now time.Time) float64 { return max(0, now.Sub(t).Seconds()) }
