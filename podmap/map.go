package podmap

import "time"

// Pod names a pod. The kubelet reports no UID, so a pod replaced by
// another pod of the same name between two lists is the same Pod.
type Pod struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// Allocation is one pod on one device id.
type Allocation struct {
	Pod Pod `json:"pod"`
	// Containers are the containers that the kubelet lists with the device, sorted. A
	// claim's devices are listed for every container that refers to the claim.
	// An ordinary init container is never listed.
	Containers []string `json:"containers"`
	// Resource is the name that the pod requests (nvidia.com/gpu), or the DRA
	// driver (gpu.nvidia.com).
	Resource string `json:"resource"`
	// DeviceID is the kubelet's id of the device.
	DeviceID string `json:"deviceID"`
	// Pool, Claim and Share are of DRA: the pool that the device is from, the
	// claim as namespace/name, and the share of a device that has several.
	Pool  string `json:"pool,omitempty"`
	Claim string `json:"claim,omitempty"`
	Share string `json:"share,omitempty"`
	// Ref is DeviceID, parsed.
	Ref Ref `json:"ref"`

	// Since is when the pod was first listed with the device. If After is set,
	// the allocation began between After, a complete list without it, and
	// Since. If After is zero, the time before Since is unknown.
	Since time.Time `json:"since"`
	After time.Time `json:"after,omitzero"`

	// Shared: other pods may have the device too, through a replica, a share
	// or a claim of several pods.
	Shared bool `json:"shared,omitempty"`
	// Kept: the latest answer does not list the allocation, and nothing
	// contradicts it either.
	Kept bool `json:"kept,omitempty"`
	// Contested: another pod is listed with the same unshared device, and it
	// is unknown which of them has it.
	Contested bool `json:"contested,omitempty"`
	// Admin: the claim has administrative access, which is for monitoring. The
	// pod uses the device beside its holder.
	Admin bool `json:"adminAccess,omitempty"`
}

// Allocatable are the devices of one resource that the kubelet can allocate:
// the ids that the device plugin reports as healthy, free or not. Devices of DRA
// are not among them.
type Allocatable struct {
	Resource string   `json:"resource"`
	IDs      []string `json:"ids"`
}

// Map has the allocations of the devices. It is immutable.
type Map struct {
	// Time is when the latest list was answered, zero before the first.
	Time time.Time `json:"time,omitzero"`
	// Confirmed is the time of the latest complete list.
	Confirmed time.Time `json:"confirmed,omitzero"`
	State     State     `json:"state"`
	// Pods is how many pods the latest list had, with devices or without.
	Pods int `json:"pods"`
	// Allocations are in order of resource, pool, device id, share, namespace
	// and pod.
	Allocations []Allocation `json:"holders"`
	// Superseded are listed allocations whose device another pod got later:
	// pods that have ended, on a kubelet before 1.34.
	Superseded []Allocation `json:"superseded,omitempty"`
	// Allocatable is in order of resource. AllocatableTime is when it was
	// answered, or zero before the first answer.
	Allocatable     []Allocatable `json:"allocatable,omitempty"`
	AllocatableTime time.Time     `json:"allocatableTime,omitzero"`
}
