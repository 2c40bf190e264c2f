package kubelet

import (
	"maps"
	"math/rand/v2"
	"slices"

	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// Pod is a pod as in PodResources: without UID, labels or phase.
type Pod struct {
	Namespace  string
	Name       string
	Containers []Container
	// Claims are the pod's resource claims. Like the kubelet, the server lists
	// them for every container.
	Claims []Claim
}

// Container is a container that PodResources lists: an ordinary one, or a
// restartable init container.
type Container struct {
	Name    string
	Devices []Device
}

// Device is one device that a device plugin assigned to a container.
type Device struct {
	Resource string
	ID       string
	// NUMA are the device's nodes. It is listed once for each.
	NUMA []int64
}

// Claim is one prepared claim.
type Claim struct {
	Namespace string
	Name      string
	Devices   []ClaimDevice
}

// ClaimDevice is one device that a DRA driver assigned to a claim.
type ClaimDevice struct {
	Driver, Pool, Device string
	// Share is the share of a shared device, or empty.
	Share string
}

// Simple returns a pod with one container and the devices of one resource.
func Simple(namespace, name, resource string, ids ...string) Pod {
	c := Container{Name: "main"}
	for _, id := range ids {
		c.Devices = append(c.Devices, Device{Resource: resource, ID: id})
	}
	return Pod{Namespace: namespace, Name: name, Containers: []Container{c}}
}

// Answer returns the answer to List of a kubelet with these pods: one entry for
// each device and NUMA node, everything in random order.
func Answer(pods ...Pod) *podresources.ListPodResourcesResponse {
	resp := &podresources.ListPodResourcesResponse{}
	for _, p := range pods {
		out := &podresources.PodResources{Namespace: p.Namespace, Name: p.Name}
		for _, c := range p.Containers {
			out.Containers = append(out.Containers, &podresources.ContainerResources{
				Name: c.Name, Devices: devices(c.Devices), DynamicResources: claims(p.Claims),
			})
		}
		resp.PodResources = append(resp.PodResources, out)
	}
	shuffle(resp.PodResources)
	return resp
}

func devices(list []Device) []*podresources.ContainerDevices {
	var out []*podresources.ContainerDevices
	for _, d := range list {
		entry := func() *podresources.ContainerDevices {
			return &podresources.ContainerDevices{ResourceName: d.Resource, DeviceIds: []string{d.ID}}
		}
		if len(d.NUMA) == 0 {
			out = append(out, entry())
		}
		for _, n := range d.NUMA {
			e := entry()
			e.Topology = &podresources.TopologyInfo{Nodes: []*podresources.NUMANode{{ID: n}}}
			out = append(out, e)
		}
	}
	shuffle(out)
	return out
}

func claims(list []Claim) []*podresources.DynamicResource {
	var out []*podresources.DynamicResource
	for _, c := range list {
		r := &podresources.DynamicResource{ClaimNamespace: c.Namespace, ClaimName: c.Name}
		for _, d := range c.Devices {
			e := &podresources.ClaimResource{
				DriverName: d.Driver, PoolName: d.Pool, DeviceName: d.Device,
				// The kubelet repeats the CDI names of the claim's first device.
				CdiDevices: []*podresources.CDIDevice{{Name: "k8s." + d.Driver + "/claim=" + c.Name + "-" + c.Devices[0].Device}},
			}
			if d.Share != "" {
				e.ShareId = &d.Share
			}
			r.ClaimResources = append(r.ClaimResources, e)
		}
		out = append(out, r)
	}
	return out
}

// allocatable is the answer to GetAllocatableResources for ids by resource.
func allocatable(byResource map[string][]string) *podresources.AllocatableResourcesResponse {
	resp := &podresources.AllocatableResourcesResponse{}
	for _, resource := range slices.Sorted(maps.Keys(byResource)) {
		for _, id := range byResource[resource] {
			resp.Devices = append(resp.Devices, &podresources.ContainerDevices{ResourceName: resource, DeviceIds: []string{id}})
		}
	}
	shuffle(resp.Devices)
	return resp
}

func shuffle[T any](list []T) {
	rand.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
}
