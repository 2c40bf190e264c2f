package collector

import (
	"encoding/json"
	"math"
	"slices"
	"time"
)

// Class is the kind of an accelerator.
type Class string

// The classes of accelerators.
const (
	GPU    Class = "gpu"
	FPGA   Class = "fpga"
	Switch Class = "switch" // of NVLink: GPUs depend on it
	CPU    Class = "cpu"    // in one module with GPUs: NVIDIA Grace
)

// Reading is one measured value of one series. A Reading that does not exist
// is not in the list.
type Reading struct {
	Metric *Metric
	// Labels are the values of Metric.Labels, in that order. Snapshots share
	// them; they must not be changed.
	Labels []string
	// Value is in the unit of the metric's name and within its Range. NaN and
	// the infinities are never readings.
	Value float64
}

// Label returns the value of a label, "" where r has none of that name.
func (r *Reading) Label(name string) string {
	if i := slices.Index(r.Metric.Labels, name); i >= 0 && i < len(r.Labels) {
		return r.Labels[i]
	}
	return ""
}

// MarshalJSON writes r with its labels by name.
func (r Reading) MarshalJSON() ([]byte, error) {
	labels := map[string]string{}
	for i, l := range r.Metric.Labels {
		labels[l] = r.Labels[i]
	}
	return json.Marshal(struct {
		Metric string            `json:"metric"`
		Labels map[string]string `json:"labels,omitempty"`
		Value  float64           `json:"value"`
	}{r.Metric.Name, labels, r.Value})
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

// Reject is an answer that is not a measurement: a sentinel, an unreadable text,
// a number outside the metric's Range.
type Reject struct {
	Metric *Metric
	// Reason is one of the Reject constants.
	Reason string
}

// Reasons for a Reject.
const (
	RejectRange    = "range"    // outside Metric.Range, infinite or NaN
	RejectSentinel = "sentinel" // the origin's value for "not available"
	RejectVersion  = "version"  // of a table whose layout is not known
	RejectType     = "type"     // of a type that the field cannot have
	RejectLimit    = "limit"    // beyond what a limit of the device itself permits
)

// Reasons why a device is not up: the label reason of accel_device_up. A Source
// can add reasons; the set must stay small and closed.
const (
	ReasonLost          = "lost"           // the driver reports the device as lost
	ReasonResetRequired = "reset_required" // the driver requires a reset
	ReasonStuck         = "stuck"          // a call to it has not returned within its deadline
	ReasonMissing       = "missing"        // enumerated earlier, not now
	ReasonUnbound       = "unbound"        // missing, and on the bus without a kernel driver
	ReasonError         = "error"          // no vital value can be read
	ReasonUnavailable   = "unavailable"    // enumerated, but its handle cannot be opened
)

// Device is one accelerator or one partition of it, as one Source saw it.
type Device struct {
	// ID is the stable identity, exported as the label device: a GPU or MIG
	// UUID, a card's serial, else a PCI address. It survives reboots.
	ID string `json:"id"`
	// Passing marks a device whose identity cannot be read: ID is its place,
	// and KubeIDs[0] its index. The Sampler replaces ID with the identity of
	// the device last seen at that place.
	Passing bool `json:"-"`
	// Parent is the ID of the whole device of a partition, or empty.
	Parent string `json:"parent,omitempty"`
	Class  Class  `json:"class"`
	// Vendor is lower case: nvidia, intel, amd.
	Vendor string `json:"vendor"`
	// Model is the product name in the vendor's spelling.
	Model string `json:"model"`
	// PCI is the address as the kernel writes it: 0000:1b:00.0, or empty.
	PCI string `json:"pci_address,omitempty"`
	// Functions are further PCI addresses of the same card.
	Functions []string `json:"functions,omitempty"`
	// Witness marks a device that the Source sees from outside, by its PCI
	// address, which is its ID unless the Source knows another. The Sampler
	// adds its Readings to the device of another Source at that address, and
	// its identity if that device has never answered; without one it is a
	// device by itself.
	Witness bool `json:"-"`
	// Driver is the kernel driver bound to the device, if a Source knows it.
	Driver string `json:"driver,omitempty"`
	// KubeIDs are the ids that device plugins and DRA drivers can use for this
	// device in the kubelet.
	KubeIDs []string `json:"kube_ids,omitempty"`

	// Down is empty for a device that answered, else one of the Reason
	// constants. A device that is down needs only its ID: the Sampler keeps
	// its last identity and counters.
	Down string `json:"down,omitempty"`
	// Sampled is when the Source last read the device with success.
	Sampled time.Time `json:"sampled,omitzero"`

	Readings []Reading `json:"readings"`
	// Rejects are the rejected values of this round.
	Rejects []Reject `json:"-"`

	// Clients are the processes that use the device. Nil means unknown, an
	// empty list that there are none.
	Clients []Client `json:"clients,omitempty"`

	// Verdict is the conclusion of a Judge, nil without one.
	Verdict *Verdict `json:"health,omitempty"`
	// Attention: the device is or was not well, so all its series are served,
	// whatever --metrics.detail is. A Judge sets it.
	Attention bool `json:"attention,omitempty"`
}

// Client is a process that uses a device.
type Client struct {
	// PID is the process id in the node's PID namespace.
	PID int `json:"pid"`
	// Type is how the process uses the device: the label type of
	// accel_processes.
	Type string `json:"type"`
	// Readings are measurements of this process alone, of families of the
	// device: accel_memory_used_bytes, accel_utilization_ratio. Values that are
	// not measured per process are absent.
	Readings []Reading `json:"readings,omitempty"`
}

// Set adds a reading of m to d, or a Reject if v is outside m's range. labels are
// the values of m.Labels. Set keeps the slice: a caller that passes the same
// slice each round (labels...) saves an allocation.
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

// Reject adds a Reject of m.
func (d *Device) Reject(m *Metric, reason string) {
	d.Rejects = append(d.Rejects, Reject{Metric: m, Reason: reason})
}
