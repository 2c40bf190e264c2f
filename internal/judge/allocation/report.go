package allocation

import (
	"cmp"
	"fmt"
	"time"

	"github.com/accel-exporter/accel-exporter/podmap"
)

// Report has every device with its allocations, or the reason why it has none.
type Report struct {
	// State is the certainty of the allocations, Reason why it is not fresh.
	State  podmap.State `json:"state"`
	Reason string       `json:"reason,omitempty"`
	// Devices are in order of their IDs, partitions among them.
	Devices []Device `json:"devices"`
	// Resources are in order of their names.
	Resources []Resource `json:"resources,omitempty"`
	// Unresolved are the allocations whose id matches no device.
	Unresolved []Unresolved `json:"unresolved,omitempty"`
	// Unattributed are the processes behind accel_unattributed_processes.
	Unattributed []Process `json:"unattributed,omitempty"`
}

// Availability is whether a device can be allocated.
type Availability string

// The values of Device.Availability. The first that applies counts.
const (
	// Allocated to a pod.
	Allocated Availability = "held"
	// Partitioned: its partitions are devices themselves.
	Partitioned Availability = "partitioned"
	// Unknown: it is unknown whether the device is allocated.
	Unknown Availability = "unknown"
	// Unmanaged: there is no kubelet on this machine.
	Unmanaged Availability = "unmanaged"
	// Occupied: not allocated, and processes use it.
	Occupied Availability = "occupied"
	// NotAllocatable: not allocated, and the kubelet cannot allocate it.
	NotAllocatable Availability = "not_allocatable"
	// Free: not allocated, and nothing is known that prevents an allocation.
	Free Availability = "free"
)

// Device is what a Report adds to a device of the Snapshot.
type Device struct {
	ID           string       `json:"id"`
	Availability Availability `json:"availability"`
	// Why is the reason, in a sentence, why the device is not allocated, or
	// not known to be.
	Why string `json:"why,omitempty"`
	// Allocatable are the resources under which the kubelet can allocate the
	// device, NotAllocatable those under which it should and cannot.
	Allocatable    []string `json:"allocatable,omitempty"`
	NotAllocatable []string `json:"not_allocatable,omitempty"`

	Holders []Allocation `json:"holders,omitempty"`
	// OmittedHolders are the allocations beyond the limit.
	OmittedHolders int `json:"omitted_holders,omitempty"`
	// Processes is the number of processes that use the device, ProcessList the
	// first of them.
	Processes   *int      `json:"processes,omitempty"`
	ProcessList []Process `json:"process_list,omitempty"`
}

// Allocation is a pod on a device in a Report. An unknown value is nil.
type Allocation struct {
	Holder
	Since time.Time `json:"since"`
	// SinceAtLeast: the allocation may be older.
	SinceAtLeast bool `json:"since_at_least,omitempty"`
	Shared       bool `json:"shared,omitempty"`
	Kept         bool `json:"kept,omitempty"`
	Contested    bool `json:"contested,omitempty"`
	Nominal      bool `json:"nominal,omitempty"`

	Utilization *float64 `json:"utilization,omitempty"`
	MemoryUsed  *float64 `json:"memory_used_bytes,omitempty"`
	Idle        *float64 `json:"idle_seconds,omitempty"`
	IdleCost    *float64 `json:"idle_cost,omitempty"`
	Currency    string   `json:"currency,omitempty"`
	// Faults are the faults of the device during the allocation.
	Faults []Fault `json:"faults,omitempty"`
}

// Fault is the latest time of a fault of a device during an allocation.
type Fault struct {
	Name string    `json:"name"`
	Time time.Time `json:"time"`
}

// Resource is a resource in a Report.
type Resource struct {
	Name string `json:"name"`
	// Allocatable are the ids that the kubelet can allocate; nil if the
	// kubelet has not reported them.
	Allocatable *int `json:"allocatable,omitempty"`
	Allocated   int  `json:"held"`
	Devices     int  `json:"devices"`
}

// Unresolved is an allocation whose id matches no device.
type Unresolved struct {
	Resource  string     `json:"resource"`
	ID        string     `json:"id"`
	How       podmap.How `json:"how"`
	Namespace string     `json:"namespace"`
	Pod       string     `json:"pod"`
}

// Process is a process that uses a device. An unknown value is nil or empty.
type Process struct {
	// Device is empty in the list of a device.
	Device  string `json:"device,omitempty"`
	PID     int    `json:"pid"`
	Command string `json:"command,omitempty"`
	// UID is the number of its user, Job that of its Slurm job.
	UID string `json:"uid,omitempty"`
	Job string `json:"slurm_job,omitempty"`
	// Utilization is that of the compute engine by this process, 0 to 1.
	Utilization *float64 `json:"utilization,omitempty"`
	// Reason is that of accel_unattributed_processes, empty for a process of a
	// pod that has the device.
	Reason string `json:"reason,omitempty"`
	// Namespace and Pod name its pod, PodUID identifies a pod without a
	// known name.
	Namespace string `json:"namespace,omitempty"`
	Pod       string `json:"pod,omitempty"`
	PodUID    string `json:"pod_uid,omitempty"`
}

// Uncertain is a sentence about allocations that are not certain, "" if they are.
func (r *Report) Uncertain() string {
	if r.State == podmap.StateFresh || r.State == podmap.StateAbsent {
		return ""
	}
	return fmt.Sprintf("The allocations are not certain (%s): %s.", r.State, cmp.Or(r.Reason, "no list yet"))
}

// Notes are remarks on an unusual allocation, without its faults.
func (a *Allocation) Notes() (notes []string) {
	for _, n := range []struct {
		is   bool
		text string
	}{
		{a.Shared, "shared"},
		{a.Kept, "not in the latest list of the kubelet"},
		{a.Contested, "contested: several pods are listed with it"},
		{a.Nominal, "the pod may have another device than its id names"},
	} {
		if n.is {
			notes = append(notes, n.text)
		}
	}
	return notes
}

// Sentence describes an allocation that matches no device.
func (u *Unresolved) Sentence() string {
	why := ""
	if u.How != podmap.HowNone {
		why = fmt.Sprintf(" (%s)", u.How)
	}
	return fmt.Sprintf("Pod %s/%s has %s %q, which matches no device of this node%s.", u.Namespace, u.Pod, u.Resource, u.ID, why)
}

// Sentence describes a process that uses a device without an allocation.
func (p *Process) Sentence(name string) string {
	command := ""
	if p.Command != "" {
		command = " (" + p.Command + ")"
	}
	uses := " uses " + name
	switch p.Reason {
	case "other_pod":
		uses = " of pod " + p.Namespace + "/" + p.Pod + uses + ", which is not allocated to it"
	case "host_process":
		if uses = " outside every pod" + uses; p.Job != "" {
			uses = " of Slurm job " + p.Job + " uses " + name
		}
	case "unknown_pod":
		uses = " of an unknown pod (" + p.PodUID + ")" + uses
	default:
		uses += " and is not visible in procfs"
	}
	return fmt.Sprintf("Process %d%s%s.", p.PID, command, uses)
}

// maxReported is the most processes of a device in a Report.
const maxReported = 64

// Holder names a pod that a device is or was allocated to.
type Holder struct {
	Namespace  string   `json:"namespace"`
	Pod        string   `json:"pod"`
	Containers []string `json:"containers"`
	Resources  []string `json:"resources"`
}
