package podmap

import (
	"cmp"
	"maps"
	"slices"

	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// allocationKey identifies an allocation.
type allocationKey struct {
	pod                           Pod
	resource, device, pool, share string
}

// listed is an allocation in one answer.
type listed struct {
	claims     []string
	containers []string
	dra        bool
}

// answer is a List without its duplicates.
type answer struct {
	pods        map[Pod]struct{}
	allocations map[allocationKey]*listed
}

// readList reads the kubelet's answer. The kubelet lists a device once for each
// NUMA node it is near, a claim's devices for each container of the pod, and
// everything in a random order.
func readList(resp *podresources.ListPodResourcesResponse) *answer {
	a := &answer{pods: map[Pod]struct{}{}, allocations: map[allocationKey]*listed{}}
	for _, p := range resp.GetPodResources() {
		a.readPod(p)
	}
	for _, l := range a.allocations {
		l.containers = sorted(l.containers)
		l.claims = sorted(l.claims)
	}
	return a
}

func (a *answer) readPod(p *podresources.PodResources) {
	pod := Pod{Namespace: p.GetNamespace(), Name: p.GetName()}
	if pod.Name == "" {
		return
	}
	a.pods[pod] = struct{}{}
	for _, c := range p.GetContainers() {
		for _, d := range c.GetDevices() {
			for _, id := range d.GetDeviceIds() {
				a.add(allocationKey{pod: pod, resource: d.GetResourceName(), device: id}, "", c.GetName(), false)
			}
		}
		for _, claim := range c.GetDynamicResources() {
			for _, r := range claim.GetClaimResources() {
				key := allocationKey{pod: pod, resource: r.GetDriverName(), device: r.GetDeviceName(), pool: r.GetPoolName(), share: r.GetShareId()}
				a.add(key, claim.GetClaimNamespace()+"/"+claim.GetClaimName(), c.GetName(), true)
			}
		}
	}
}

func (a *answer) add(key allocationKey, claim, container string, dra bool) {
	if key.device == "" || key.resource == "" {
		return
	}
	l := a.allocations[key]
	if l == nil {
		l = &listed{dra: dra}
		a.allocations[key] = l
	}
	l.containers, l.claims = append(l.containers, container), append(l.claims, claim)
}

func sorted(list []string) []string {
	slices.Sort(list)
	return slices.Compact(list)
}

// readAllocatable reads the devices that the kubelet can allocate. A device near
// two NUMA nodes is listed twice.
func readAllocatable(resp *podresources.AllocatableResourcesResponse) []Allocatable {
	ids := map[string][]string{}
	for _, d := range resp.GetDevices() {
		for _, id := range d.GetDeviceIds() {
			if id != "" {
				ids[d.GetResourceName()] = append(ids[d.GetResourceName()], id)
			}
		}
	}
	list := make([]Allocatable, 0, len(ids))
	for _, resource := range slices.Sorted(maps.Keys(ids)) {
		list = append(list, Allocatable{Resource: resource, IDs: sorted(ids[resource])})
	}
	return list
}

func (k allocationKey) compare(o allocationKey) int {
	return cmp.Or(
		cmp.Compare(k.resource, o.resource), cmp.Compare(k.pool, o.pool), cmp.Compare(k.device, o.device), cmp.Compare(k.share, o.share),
		cmp.Compare(k.pod.Namespace, o.pod.Namespace), cmp.Compare(k.pod.Name, o.pod.Name),
	)
}
