package collector

import "time"

// EventKind names what happened. It is the value of the label event of
// accel_device_events_total, but for EventXid and EventSXid, which have families of their own.
type EventKind string

// The kinds of events.
const (
	EventXid             EventKind = "xid"
	EventMIGConfig       EventKind = "mig_config_change"
	EventRecoveryAction  EventKind = "recovery_action_change"
	EventUnavailable     EventKind = "gpu_unavailable"
	EventPoison          EventKind = "poison"
	EventPoisonFatal     EventKind = "poison_fatal"
	EventECCSingleBit    EventKind = "ecc_single_bit"
	EventECCDoubleBit    EventKind = "ecc_double_bit"
	EventSingleBitStorm  EventKind = "ecc_single_bit_storm"
	EventRetirement      EventKind = "dram_retirement"
	EventRetirementError EventKind = "dram_retirement_failure"
	EventPowerSource     EventKind = "power_source_change"
	EventSXid            EventKind = "sxid"
	EventBusLoss         EventKind = "bus_loss"
	EventAER             EventKind = "aer"
	EventReconfiguration EventKind = "reconfiguration"
	EventDriverLoaded    EventKind = "driver_loaded"
	// Policies of DCGM: a value has passed what was set at the host engine.
	EventPolicyDBE     EventKind = "policy_ecc_double_bit"
	EventPolicyPCIe    EventKind = "policy_pcie_replay"
	EventPolicyPages   EventKind = "policy_retired_pages"
	EventPolicyThermal EventKind = "policy_thermal"
	EventPolicyPower   EventKind = "policy_power"
	EventPolicyNVLink  EventKind = "policy_nvlink"
)

// eventKinds is every kind that accel_device_events_total may carry; an event
// of another kind is a bug of its Source and is counted as lost.
var eventKinds = []EventKind{
	EventMIGConfig, EventRecoveryAction, EventUnavailable, EventPoison, EventPoisonFatal,
	EventECCSingleBit, EventECCDoubleBit, EventSingleBitStorm, EventRetirement,
	EventRetirementError, EventPowerSource, EventBusLoss, EventAER,
	EventReconfiguration, EventDriverLoaded,
	EventPolicyDBE, EventPolicyPCIe, EventPolicyPages, EventPolicyThermal, EventPolicyPower, EventPolicyNVLink,
}

// eventBaseline are the kinds that stand at 0 for every NVIDIA GPU from its
// first round on.
var eventBaseline = []EventKind{EventMIGConfig, EventRecoveryAction, EventUnavailable, EventECCDoubleBit}

// MaxDetail is the most bytes that Event.Detail and Event.Sub may have.
const MaxDetail = 500

// Event is something that happened between samples. A Source delivers it by
// push, so that nothing is lost between two scrapes.
type Event struct {
	// Time is when its origin says that it happened, else when the Sampler
	// heard of it.
	Time time.Time `json:"time"`
	// Source is the name of the Source that witnessed it.
	Source string `json:"source"`
	// Device is the ID of the device it happened to: of the whole device,
	// even where one partition can be blamed. A Source that does not know the
	// ID leaves it empty and says PCI.
	Device string `json:"device"`
	// PCI is the address by which the origin names the device, as the kernel
	// writes it: 0000:1b:00.0. The Sampler finds the Device for it.
	PCI string `json:"pci_address,omitempty"`
	// Partition is the ID of the partition it is attributed to, or empty.
	Partition string `json:"partition,omitempty"`
	// Place is where on the device it happened, for a Source that knows no IDs
	// of partitions: the GPU instance, and after a slash the compute instance,
	// as the driver numbers them. The Sampler finds the Partition for it.
	Place string    `json:"-"`
	Kind  EventKind `json:"kind"`
	// Code is the number of an EventXid or EventSXid, else the origin's event
	// data.
	Code uint64 `json:"code"`
	// Sub is what the origin says beside Code to tell faults of one code
	// apart: the unit and error of an NVLink Xid, the name of a PCIe error. It
	// is a short token of a bounded set.
	Sub string `json:"sub,omitempty"`
	// Detail is what the origin printed: one line, at most MaxDetail bytes.
	Detail string `json:"detail,omitempty"`
	// Cause is the number of the earlier Xid of which the driver says that it
	// caused this one, or 0.
	Cause uint64 `json:"cause,omitempty"`
	// Action is the recovery that the driver asked for with the event, one of
	// the values of accel_gpu_recovery_action, or empty.
	Action string `json:"action,omitempty"`
	// Past marks an event that was already in its log when the exporter
	// started. It is judged and shown, and not counted.
	Past bool `json:"past,omitempty"`
	// Witnesses are the Sources that told of it, where more than one did. The
	// Sampler fills it in.
	Witnesses []string `json:"witnesses,omitempty"`
}
