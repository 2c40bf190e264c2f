package allocation

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/accel-exporter/accel-exporter/podmap"
)

// idKey is an id under the name of a resource.
type idKey struct{ resource, id string }

// found is what an id led to.
type found struct {
	device *device
	how    podmap.How
}

// join is what the latest Map led to.
type join struct {
	// ids are all that were held or allocatable, as they were found.
	ids     map[idKey]found
	how     map[podmap.How]int
	held    map[string]int // ids by resource
	nominal map[podmap.Pod]bool
	// unresolved are the holds of which no device was found.
	unresolved []Unresolved
	// doubtful are those among them that may mean a device that is there.
	doubtful []doubtful
	// ambiguous are the holds of which several partitions may be meant, and
	// placed the partitions that their names were found to mean.
	ambiguous []*podmap.Holder
	placed    map[idKey]*device
	holders   int
	omitted   int
}

// forget drops what was found among other devices.
func (x *join) forget() { x.ids = map[idKey]found{} }

// resolve finds the device of an id.
func (j *Judge) resolve(resource string, ref *podmap.Ref, raw string) found {
	key := idKey{resource, raw}
	f, ok := j.join.ids[key]
	if !ok {
		id, how := j.index.Resolve(resource, *ref)
		f = found{j.devices[id], how}
		j.join.ids[key] = f
	}
	return f
}

// find finds the device of a hold: by what its driver published of it, else by
// the id alone.
func (j *Judge) find(p *podmap.Holder) found {
	if p.Claim == "" || j.options.Claimed == nil {
		return j.resolve(p.Resource, &p.Ref, p.DeviceID)
	}
	// What the driver says may be something else by now.
	id, how := j.index.ResolveDRA(*p, j.options.Claimed(p.Resource, p.Pool, p.DeviceID))
	f := found{j.devices[id], how}
	j.join.ids[idKey{p.Resource, p.DeviceID}] = f
	return f
}

// rejoin brings the holds in line with the Map.
func (j *Judge) rejoin() {
	x := &j.join
	x.held, x.nominal = map[string]int{}, map[podmap.Pod]bool{}
	x.unresolved, x.doubtful, x.ambiguous = nil, nil, x.ambiguous[:0]
	x.holders, x.omitted = 0, 0
	for _, st := range j.order {
		st.omitted = 0
		clear(st.offered)
		for _, h := range st.holds {
			h.before()
		}
	}
	counted := make(map[idKey]bool, len(j.pods.Holders))
	for i := range j.pods.Holders {
		p := &j.pods.Holders[i]
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

// before prepares a hold for being told again.
func (h *hold) before() {
	h.containers, h.resources, h.ids = h.containers[:0], h.resources[:0], h.ids[:0]
	h.shared, h.nominal, h.kept, h.contested = false, false, false, false
}

// enter takes one entry of the Map, and what its id led to.
func (j *Judge) enter(p *podmap.Holder, f found, counted map[idKey]bool) {
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
			if !isGone(p.Ref.Form, f.how) {
				x.doubtful = append(x.doubtful, doubtful{p.Resource, &p.Ref})
			}
		}
		return
	}
	if !again {
		x.held[p.Resource]++
		st.offered[p.Resource]++
	}
	h := st.holdOf(p.Pod)
	if h == nil || h.round != j.round {
		if x.holders >= j.settings.MaxHolders {
			x.omitted++
			st.omitted++
			return
		}
		x.holders++
		if h == nil {
			h = j.begin(st, p)
		}
		h.round, h.since, h.after = j.round, p.Since, p.After
	}
	if p.Since.Before(h.since) {
		h.since, h.after = p.Since, p.After
	}
	h.containers = add(h.containers, p.Containers...)
	h.resources = add(h.resources, p.Resource)
	h.ids = add(h.ids, p.DeviceID)
	h.shared, h.nominal = h.shared || p.Shared, h.nominal || p.Ref.Nominal
	h.kept, h.contested = h.kept || p.Kept, h.contested || p.Contested
}

// begin makes a new hold.
func (j *Judge) begin(st *device, p *podmap.Holder) *hold {
	h := &hold{device: st, pod: p.Pod, since: p.Since, barrier: latest(p.Since, j.before)}
	at, _ := slices.BinarySearchFunc(st.holds, p.Pod, func(h *hold, pod podmap.Pod) int { return comparePods(h.pod, pod) })
	st.holds = slices.Insert(st.holds, at, h)
	return h
}

// settle ends the holds of a device that are not told any more and brings the
// others up to date.
func (j *Judge) settle(st *device) {
	told := st.holds[:0]
	for _, h := range st.holds {
		if h.round != j.round {
			st.end(h, j.now)
			continue
		}
		told = append(told, h)
		h.relabel()
		h.idle, h.never = j.settings.idleOf(h.resources)
		h.never = !h.never
		h.price, h.priced = j.settings.priceOf(st, h.resources)
		if h.costs == nil || h.costs[len(h.costs)-1] != j.settings.Currency {
			h.costs = append(h.labels[:len(h.labels):len(h.labels)], j.settings.Currency)
			if h.currency != j.settings.Currency {
				h.cost, h.currency = 0, j.settings.Currency
			}
		}
		if !h.after.IsZero() {
			j.firstOf(h.labels[len(h.labels)-1])
		}
		st.inherit(h)
	}
	clear(st.holds[len(told):])
	st.holds = told
	var held []string
	for _, h := range told {
		held = add(held, h.resources...)
	}
	if !slices.Equal(held, st.held) {
		st.held = held // callers keep the one before
	}
}

func comparePods(a, b podmap.Pod) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
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

// Held returns the names of the resources by which pods hold the device, nil
// where none does or it is not known. The list must not be changed.
func (j *Judge) Held(device string) []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	if st := j.devices[device]; st != nil {
		return st.held
	}
	return nil
}

// age is the time from t to now, in seconds.
func age(t, now time.Time) float64 { return max(0, now.Sub(t).Seconds()) }
