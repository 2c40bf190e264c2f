package podmap

import (
	"cmp"
	"maps"
	"slices"
)

// Limits on what is taken from one answer. A kubelet runs 110 pods by default
// and some hundred at most.
const (
	maxPods       = 4096
	maxHolds      = 16384
	maxContainers = 256 // of one hold
	maxText       = 512 // bytes of a name or an id
)

// holdKey identifies a hold.
type holdKey struct {
	pod                           Pod
	resource, device, pool, share string
}

// listed is a hold as one answer has it.
type listed struct {
	claim      string
	containers []string
	dra        bool
}

// answer is a List, with what it says twice said once.
type answer struct {
	pods      map[Pod]struct{}
	holds     map[holdKey]*listed
	malformed uint64
	overflow  uint64
}

// readList reads what the kubelet answered, a ListPodResourcesResponse. The
// kubelet lists a device once for each NUMA node it is near, a claim's devices
// for each container of the pod, and everything in a random order.
func readList(message []byte) (*answer, error) {
	var w wire
	a := &answer{pods: map[Pod]struct{}{}, holds: map[holdKey]*listed{}}
	for p := range w.each(message, listPods) {
		a.readPod(&w, p)
	}
	if w.broken {
		return nil, errWire
	}
	for _, l := range a.holds {
		slices.Sort(l.containers)
		l.containers = slices.Compact(l.containers)
	}
	return a, nil
}

func (a *answer) readPod(w *wire, message []byte) {
	pod := Pod{Namespace: w.text(message, podNamespace), Name: w.text(message, podName)}
	switch {
	case pod.Name == "":
		a.malformed++
		return
	case len(a.pods) >= maxPods || tooLong(pod.Name, pod.Namespace):
		a.overflow++
		return
	}
	a.pods[pod] = struct{}{}
	for c := range w.each(message, podContainers) {
		a.readContainer(w, pod, c)
	}
}

func (a *answer) readContainer(w *wire, pod Pod, message []byte) {
	container := w.text(message, containerName)
	for d := range w.each(message, containerDevices) {
		resource := w.text(d, devicesResource)
		for id := range w.each(d, devicesIDs) {
			a.add(holdKey{pod: pod, resource: resource, device: w.string(id)}, "", container, false)
		}
	}
	for claim := range w.each(message, containerClaims) {
		name := w.text(claim, claimNamespace) + "/" + w.text(claim, claimName)
		for r := range w.each(claim, claimResources) {
			key := holdKey{
				pod: pod, resource: w.text(r, claimedDriver), device: w.text(r, claimedDevice),
				pool: w.text(r, claimedPool), share: w.text(r, claimedShare),
			}
			a.add(key, name, container, true)
		}
	}
}

func (a *answer) add(key holdKey, claim, container string, dra bool) {
	if key.device == "" || key.resource == "" {
		a.malformed++
		return
	}
	if tooLong(key.resource, key.device, key.pool, key.share, claim, container) {
		a.overflow++
		return
	}
	l := a.holds[key]
	if l == nil {
		if len(a.holds) >= maxHolds {
			a.overflow++
			return
		}
		l = &listed{claim: claim, dra: dra}
		a.holds[key] = l
	}
	// Through two claims of one pod the device is held by the first in order.
	l.claim = min(l.claim, claim)
	if len(l.containers) < maxContainers {
		l.containers = append(l.containers, container)
	}
}

func tooLong(texts ...string) bool {
	return slices.ContainsFunc(texts, func(s string) bool { return len(s) > maxText })
}

// readAllocatable reads what the kubelet would give out, an
// AllocatableResourcesResponse. A device near two NUMA nodes is listed twice
// here too.
func readAllocatable(message []byte) ([]Allocatable, error) {
	var w wire
	ids, n := map[string][]string{}, 0
	for d := range w.each(message, allocatableDevices) {
		resource := w.text(d, devicesResource)
		for v := range w.each(d, devicesIDs) {
			id := w.string(v)
			if n++; n > maxHolds || id == "" || tooLong(resource, id) {
				continue
			}
			ids[resource] = append(ids[resource], id)
		}
	}
	if w.broken {
		return nil, errWire
	}
	list := make([]Allocatable, 0, len(ids))
	for _, resource := range slices.Sorted(maps.Keys(ids)) {
		slices.Sort(ids[resource])
		list = append(list, Allocatable{Resource: resource, IDs: slices.Compact(ids[resource])})
	}
	return list, nil
}

func (k holdKey) compare(o holdKey) int {
	return cmp.Or(
		cmp.Compare(k.resource, o.resource), cmp.Compare(k.pool, o.pool), cmp.Compare(k.device, o.device), cmp.Compare(k.share, o.share),
		cmp.Compare(k.pod.Namespace, o.pod.Namespace), cmp.Compare(k.pod.Name, o.pod.Name),
	)
}
