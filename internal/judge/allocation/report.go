package allocation

import (
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/podmap"
)

// Report says of every device who holds it and what for, else why nobody does.
// It is what `who` prints.
type Report struct {
	// Time is that of the Snapshot behind it; zero before the first.
	Time time.Time `json:"time,omitzero"`
	// State says what the list of holders is worth, Reason why it is not
	// fresh, and Listed when the kubelet gave it.
	State  podmap.State `json:"state"`
	Reason string       `json:"reason,omitempty"`
	Listed time.Time    `json:"listed,omitzero"`
	// Devices are in order of their IDs, partitions among them.
	Devices []Device `json:"devices"`
	// Resources are in order of their names.
	Resources []Resource `json:"resources,omitempty"`
	// Unresolved are the holds of which no device was found.
	Unresolved []Unresolved `json:"unresolved,omitempty"`
	// Unattributed are the processes behind accel_unattributed_processes.
	Unattributed []Process `json:"unattributed,omitempty"`
}

// Availability says whether a device can be had.
type Availability string

// The values of Device.Availability. The first that applies does.
const (
	// Held: a pod holds it.
	Allocated Availability = "held"
	// Partitioned: it is cut into partitions, which are devices themselves.
	Partitioned Availability = "partitioned"
	// Unknown: nobody can say whether a pod holds it.
	Unknown Availability = "unknown"
	// Unmanaged: there is no kubelet on this machine.
	Unmanaged Availability = "unmanaged"
	// Occupied: no pod holds it, and processes use it.
	Occupied Availability = "occupied"
	// NotAllocatable: no pod holds it, and the kubelet would give it to none.
	NotAllocatable Availability = "not_allocatable"
	// Free: no pod holds it, and nothing is known against giving it to one.
	Free Availability = "free"
)

// Device is what a Report says of a device. What is nil is not known.
type Device struct {
	ID      string `json:"id"`
	Parent  string `json:"parent,omitempty"`
	Class   string `json:"class"`
	Vendor  string `json:"vendor"`
	Model   string `json:"model,omitempty"`
	Index   string `json:"index,omitempty"`
	Profile string `json:"profile,omitempty"`
	PCI     string `json:"pci_address,omitempty"`

	// Health is the state of its verdict, empty without one; Action what would
	// bring it back; Reasons are the first that speak against it.
	Health  string   `json:"health,omitempty"`
	Action  string   `json:"action,omitempty"`
	Reasons []string `json:"reasons,omitempty"`
	// Down is why it does not answer.
	Down string `json:"down,omitempty"`

	Availability Availability `json:"availability"`
	// Why says in a sentence why the device is not held, or not known to be.
	Why string `json:"why,omitempty"`
	// Allocatable are the resources under which the kubelet would give it
	// out; NotAllocatable those under which it would not, and should.
	Allocatable    []string `json:"allocatable,omitempty"`
	NotAllocatable []string `json:"not_allocatable,omitempty"`

	Holders []Allocation `json:"holders,omitempty"`
	// OmittedHolders are those beyond the limit.
	OmittedHolders int      `json:"omitted_holders,omitempty"`
	Utilization    *float64 `json:"utilization,omitempty"`
	MemoryUsed     *float64 `json:"memory_used_bytes,omitempty"`
	MemoryTotal    *float64 `json:"memory_total_bytes,omitempty"`
	Power          *float64 `json:"power_watts,omitempty"`
	// Processes is how many use it.
	Processes *int `json:"processes,omitempty"`
}

// Hold is what a Report says of a pod on a device. What is nil is not known.
type Allocation struct {
	Holder
	Since time.Time `json:"since"`
	// SinceAtLeast says that the hold may be older.
	SinceAtLeast bool `json:"since_at_least,omitempty"`
	Shared       bool `json:"shared,omitempty"`
	Kept         bool `json:"kept,omitempty"`
	Contested    bool `json:"contested,omitempty"`
	Nominal      bool `json:"nominal,omitempty"`

	Allocated    float64   `json:"allocated_seconds"`
	Utilization  *float64  `json:"utilization,omitempty"`
	MemoryUsed   *float64  `json:"memory_used_bytes,omitempty"`
	Idle         *float64  `json:"idle_seconds,omitempty"`
	IdleTotal    *float64  `json:"idle_seconds_total,omitempty"`
	IdleCost     *float64  `json:"idle_cost,omitempty"`
	Currency     string    `json:"currency,omitempty"`
	LastActivity time.Time `json:"last_activity,omitzero"`
	// Faults are those that the device had meanwhile.
	Faults []Fault `json:"faults,omitempty"`
}

// Fault is when a device last had a fault while a pod held it.
type Fault struct {
	Name string    `json:"name"`
	Time time.Time `json:"time"`
}

// Resource is what a Report says of a resource.
type Resource struct {
	Name string `json:"name"`
	// Allocatable are the ids that the kubelet would give out; nil where it
	// has not said.
	Allocatable *int `json:"allocatable,omitempty"`
	Allocated   int  `json:"held"`
	Devices     int  `json:"devices"`
}

// Unresolved is a hold of which no device was found.
type Unresolved struct {
	Resource  string     `json:"resource"`
	ID        string     `json:"id"`
	How       podmap.How `json:"how"`
	Namespace string     `json:"namespace"`
	Pod       string     `json:"pod"`
}

// Process is one that uses a device without its pod holding it.
type Process struct {
	Device  string `json:"device"`
	PID     int    `json:"pid"`
	Command string `json:"command,omitempty"`
	// Reason is that of accel_unattributed_processes.
	Reason string `json:"reason"`
	// Namespace and Pod are those of a process of another pod, PodUID that of
	// one without a name.
	Namespace string    `json:"namespace,omitempty"`
	Pod       string    `json:"pod,omitempty"`
	PodUID    string    `json:"pod_uid,omitempty"`
	Since     time.Time `json:"since"`
}

// maxReasons is how many reasons of a verdict are told.
const maxReasons = 3

// verdict is a copy of the device's, which must not be kept.
type verdict struct {
	state, action string
	reasons       [maxReasons]string
	n             int
}

func (v *verdict) take(of *collector.Verdict) {
	*v = verdict{}
	if of == nil {
		return
	}
	v.state, v.action = of.State, of.Action
	for _, r := range of.Reasons[:min(len(of.Reasons), maxReasons)] {
		v.reasons[v.n] = r.Text
		v.n++
	}
}
