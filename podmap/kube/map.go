package kube

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// Workload is a controller of pods.
type Workload struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
}

// Pod has the kept fields of a pod.
type Pod struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
	// Labels are the allowed labels. The map must not be changed.
	Labels map[string]string `json:"labels,omitempty"`
	// Context is the trace context of an annotation, verbatim and unchecked:
	// up to 1024 bytes, empty without an annotation of Options.Contexts.
	Context string `json:"context,omitempty"`
	// Controller is the object that made the pod (ReplicaSet, Job), and
	// Workload the object that a person made (Deployment, CronJob), which may be
	// the same. Both are empty for a pod that nothing controls.
	Controller Workload  `json:"controller,omitzero"`
	Workload   Workload  `json:"workload,omitzero"`
	Created    time.Time `json:"created,omitzero"`
	// Deleted is when this program learned that the pod is gone.
	Deleted time.Time `json:"deleted,omitzero"`
}

// Device is a device that a DRA driver publishes for this node. A missing
// attribute is empty. Attributes are read by the names that the drivers of
// NVIDIA, AMD and Intel use, and by the standard
// resource.kubernetes.io/pciBusID.
type Device struct {
	// Driver, Pool and Name are how a claim, and so the kubelet, names it.
	Driver string `json:"driver"`
	Pool   string `json:"pool"`
	Name   string `json:"name"`
	// UUID is the device's (uuid), ParentUUID the UUID of the device that it is
	// a partition of (parentUUID).
	UUID       string `json:"uuid,omitempty"`
	ParentUUID string `json:"parentUUID,omitempty"`
	// PCI is the address as the driver writes it (pciBusID, pcieBusID,
	// pciAddress, pciAddr); of a partition, that of its parent.
	PCI string `json:"pci,omitempty"`
}

// Map is the data of a Watcher. It is immutable.
type Map struct {
	// State is that of the pods, SliceState that of the slices; empty where
	// they are not watched.
	State      State `json:"state"`
	SliceState State `json:"sliceState,omitempty"`
	// Pods are in order of namespace and name; of one name, the existing pod
	// comes before the deleted ones, and of these the latest first.
	Pods []Pod `json:"pods"`
	// Devices are in order of driver, pool and name.
	Devices []Device `json:"devices,omitempty"`
}

// Pod returns the pod of a name: the existing one, or else the one deleted
// last, for ten minutes.
func (m *Map) Pod(namespace, name string) (Pod, bool) {
	i, ok := slices.BinarySearchFunc(m.Pods, Pod{Namespace: namespace, Name: name}, comparePodNames)
	if !ok {
		return Pod{}, false
	}
	return m.Pods[i], true
}

// PodOf returns the pod with that UID.
func (m *Map) PodOf(uid string) (Pod, bool) {
	i := slices.IndexFunc(m.Pods, func(p Pod) bool { return p.UID == uid })
	if i < 0 {
		return Pod{}, false
	}
	return m.Pods[i], true
}

// Device returns the published device with this name in a pool.
func (m *Map) Device(driver, pool, name string) (Device, bool) {
	i, ok := slices.BinarySearchFunc(m.Devices, Device{Driver: driver, Pool: pool, Name: name}, compareDevices)
	if !ok {
		return Device{}, false
	}
	return m.Devices[i], true
}

func comparePodNames(a, b Pod) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

func compareDevices(a, b Device) int {
	return cmp.Or(cmp.Compare(a.Driver, b.Driver), cmp.Compare(a.Pool, b.Pool), cmp.Compare(a.Name, b.Name))
}

// sortedPods returns the pods in the order of Map.Pods.
func sortedPods(pods map[string]Pod) []Pod {
	return slices.SortedFunc(maps.Values(pods), func(a, b Pod) int {
		order := comparePodNames(a, b)
		switch {
		case order != 0:
			return order
		case a.Deleted.IsZero() && !b.Deleted.IsZero():
			return -1
		case b.Deleted.IsZero() && !a.Deleted.IsZero():
			return 1
		}
		return cmp.Or(b.Deleted.Compare(a.Deleted), b.Created.Compare(a.Created), cmp.Compare(a.UID, b.UID))
	})
}

// sortedDevices returns the devices in the order of Map.Devices.
func sortedDevices(pools map[poolKey]map[string]Device) []Device {
	var list []Device
	for _, devices := range pools {
		list = slices.AppendSeq(list, maps.Values(devices))
	}
	slices.SortFunc(list, compareDevices)
	return list
}
