package collector

import (
	"math"
	"slices"
	"time"
)

// Class is what kind of accelerator a Device is.
type Class string

// The classes of accelerators.
const (
	GPU    Class = "gpu"
	FPGA   Class = "fpga"
	Switch Class = "switch" // of NVLink; no accelerator, but one is lost with it
	CPU    Class = "cpu"    // that shares a module with GPUs: NVIDIA Grace
)

// Reading is one measured value of one series. A Reading that does not exist
// is not in the list.
type Reading struct {
	Metric *Metric
	// Labels are the values of Metric.Labels, in that order. They are shared
	// between Snapshots and must not be changed.
	Labels []string
	// Value is in the unit that the metric's name ends in and within its
	// Range; NaN and the infinities are never readings.
	Value float64
}

// sameSeries reports whether r and o are readings of one series. It compares
// the label slices by pointer first: a source passes the same slices each
// round.
func (r *Reading) sameSeries(o *Reading) bool {
	if r.Metric != o.Metric || len(r.Labels) != len(o.Labels) {
		return false
	}
	return len(r.Labels) == 0 || &r.Labels[0] == &o.Labels[0] || slices.Equal(r.Labels, o.Labels)
}

// Reject is a value that was answered but is no measurement: a sentinel, an
// unreadable text, a number outside the metric's Range.
type Reject struct {
	Metric *Metric
	// Reason is one of the Reject constants.
	Reason string
}

// Why a value was rejected.
const (
	RejectRange    = "range"    // outside Metric.Range, infinite or NaN
	RejectSentinel = "sentinel" // the origin's own mark for "not available"
	RejectType     = "type"     // answered in a type that the field cannot have
)

// Why a device is not up: the values of the label reason of accel_device_up.
// A Source may add its own; the set must stay small and closed.
const (
	ReasonLost          = "lost"           // the driver says that the device is lost
	ReasonResetRequired = "reset_required" // the driver asks for a reset first
	ReasonStuck         = "stuck"          // a call to it has not returned within its deadline
	ReasonMissing       = "missing"        // seen before, no longer enumerated
	ReasonError         = "error"          // none of its vital values can be read
	ReasonUnavailable   = "unavailable"    // enumerated, but its handle cannot be opened
)

// Device is one accelerator or one partition of it, as one Source saw it.
type Device struct {
	// ID is the stable identity, exported as the label device: a GPU or MIG
	// UUID, a card's serial, else a PCI address. It survives reboots.
	ID string
	// Passing says that ID is no identity but the place where a device was
	// found that could not be asked for its own: KubeIDs[0] is its index then.
	// The Sampler puts a known device of that place in its stead.
	Passing bool
	// Parent is the ID of the device that this one is a partition of, or
	// empty.
	Parent string
	Class  Class
	// Vendor is lower case: nvidia, intel, amd.
	Vendor string
	// Model is the product name in the vendor's spelling.
	Model string
	// PCI is the address as the kernel writes it: 0000:1b:00.0, or empty.
	PCI string
	// Functions are further PCI addresses of the same card.
	Functions []string
	// Witness says that the Source sees the device from outside, by its PCI
	// address, which is its ID. The Sampler adds its Readings to the device
	// that another Source has at that address; where none has, it stands for
	// itself.
	Witness bool
	// Driver is the kernel's driver that is bound to the device, where a
	// Source knows it.
	Driver string
	// KubeIDs are the ids by which device plugins and DRA drivers may name
	// this device to the kubelet.
	KubeIDs []string

	// Down is empty for a device that answered, else why it did not: one of
	// the Reason constants. A device that is down needs its ID only; what it
	// was and counted when it answered is remembered.
	Down string
	// Sampled is when the Source last read the device with success.
	Sampled time.Time

	Readings []Reading
	// Rejects are this round's rejected values.
	Rejects []Reject

	// Clients are the processes that use the device, where its Source can tell.
	// Nil says that nobody looked; an empty list, that there are none.
	Clients []Client
	// Accounts are what the driver's accounting says of the processes that use
	// the device, and of those that have lately ended. Nil says that nobody
	// looked.
	Accounts []Account

	// Verdict is what a Judge concluded of the device, nil where none did.
	Verdict *Verdict
}

// Client is a process that uses a device.
type Client struct {
	// PID is the process's id in the node's PID namespace.
	PID int
	// Type is how it uses the device: a value of the label type of
	// accel_processes.
	Type string
	// Readings are what was measured of this process alone, of families of the
	// device: accel_memory_used_bytes, accel_utilization_ratio. What cannot be
	// told by process is not there.
	Readings []Reading
}

// Account is what a driver's accounting says of one process on one device. What
// it does not say is nil.
type Account struct {
	// PID is the process's id in the PID namespace of whoever asked the driver.
	PID int `json:"pid"`
	// Started is when it began to use the device, and Ended when it ceased to;
	// the zero time stands for a process that runs.
	Started time.Time `json:"started"`
	Ended   time.Time `json:"ended,omitzero"`
	// MemoryPeak is the most device memory that it has had at a time, in bytes.
	MemoryPeak *float64 `json:"memory_peak_bytes,omitempty"`
	// Compute and Memory are the shares, 0 to 1, of the time from Started on in
	// which its kernels ran, and in which device memory was read or written.
	Compute *float64 `json:"compute_utilization,omitempty"`
	Memory  *float64 `json:"memory_utilization,omitempty"`
}

// Set adds a reading of m to d, or a Reject where v is outside m's range. The
// labels are the values of m.Labels. Set keeps the slice: a caller that
// passes the same slice each round (labels...) saves an allocation.
func (d *Device) Set(m *Metric, v float64, labels ...string) {
	if !m.Range.Contains(v) || math.IsInf(v, 0) {
		d.Reject(m, RejectRange)
		return
	}
	d.Readings = append(d.Readings, Reading{Metric: m, Labels: labels, Value: v})
}

// SetBool adds 1 or 0.
func (d *Device) SetBool(m *Metric, v bool, labels ...string) {
	f := 0.0
	if v {
		f = 1
	}
	d.Set(m, f, labels...)
}

// Reject notes that the origin answered m with something that is no value.
func (d *Device) Reject(m *Metric, reason string) {
	d.Rejects = append(d.Rejects, Reject{Metric: m, Reason: reason})
}
