package podmap

import "time"

// Pod names a pod. The kubelet gives no UID here, so a pod that was replaced
// by another of its name between two lists is the same one.
type Pod struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// Holder is one pod's hold on one device id.
type Allocation struct {
	Pod Pod `json:"pod"`
	// Containers are those that the kubelet lists with the device, sorted. A
	// claim's devices are listed for every container that refers to the claim,
	// whichever request it names; an ordinary init container is never listed.
	Containers []string `json:"containers"`
	// Resource is the name that the pod asked for (nvidia.com/gpu), or the DRA
	// driver (gpu.nvidia.com).
	Resource string `json:"resource"`
	// DeviceID is the kubelet's id of the device, as it writes it.
	DeviceID string `json:"deviceID"`
	// Pool, Claim and Share are of DRA: the pool that the device is from, the
	// claim as namespace/name, and the share of a device that has several.
	Pool  string `json:"pool,omitempty"`
	Claim string `json:"claim,omitempty"`
	Share string `json:"share,omitempty"`
	// Ref is DeviceID, understood.
	Ref Ref `json:"ref"`

	// Since is when the holder was first listed with the device. Where After
	// is not zero, the hold began between After, a complete list without it,
	// and Since; where it is zero, nothing is known of the time before Since.
	Since time.Time `json:"since"`
	After time.Time `json:"after,omitzero"`
	// Listed is the time of the latest answer with this hold in it.
	Listed time.Time `json:"listed"`

	// Shared says that others may hold the device beside this one: a replica,
	// a share, a claim of several pods.
	Shared bool `json:"shared,omitempty"`
	// Kept says that the latest answer does not list the hold, and that nothing
	// has contradicted it either.
	Kept bool `json:"kept,omitempty"`
	// Contested says that another pod is told with the same unshared device,
	// and that nothing says which of them is right.
	Contested bool `json:"contested,omitempty"`
}

// Allocatable are the devices of one resource that the kubelet would give to a
// pod: those that their plugin calls healthy, free or not. Devices of DRA are
// not among them.
type Allocatable struct {
	Resource string   `json:"resource"`
	IDs      []string `json:"ids"`
}

// Map says who holds which device. It is immutable.
type Map struct {
	// Time is when the latest list was answered, zero before the first.
	Time time.Time `json:"time,omitzero"`
	// Confirmed is when the latest list was answered that is known to be
	// complete.
	Confirmed time.Time `json:"confirmed,omitzero"`
	State     State     `json:"state"`
	// Pods is how many pods the latest list had, with devices or without.
	Pods int `json:"pods"`
	// Holders are in order of resource, pool, device id, share, namespace and
	// pod.
	Allocations []Allocation `json:"holders"`
	// Superseded are holds that the kubelet lists although another pod got the
	// device later: pods that have ended, on a kubelet before 1.34.
	Superseded []Allocation `json:"superseded,omitempty"`
	// Allocatable is in order of resource. AllocatableTime is when it was
	// answered; zero where it never was.
	Allocatable     []Allocatable `json:"allocatable,omitempty"`
	AllocatableTime time.Time     `json:"allocatableTime,omitzero"`

	byID map[string][]int
}

// Of returns those who hold the device that the kubelet calls id: more than
// one for a claim of several pods, or where they are contested.
func (m *Map) Of(id string) []Allocation {
	at := m.byID[id]
	if len(at) == 0 {
		return nil
	}
	holders := make([]Allocation, len(at))
	for i, n := range at {
		holders[i] = m.Allocations[n]
	}
	return holders
}

func (m *Map) index() {
	m.byID = make(map[string][]int, len(m.Allocations))
	for i := range m.Allocations {
		id := m.Allocations[i].DeviceID
		m.byID[id] = append(m.byID[id], i)
	}
}
