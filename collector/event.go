package collector

import "time"

// EventKind is what happened: the label event of accel_device_events_total.
// EventXid and EventSXid have their own families.
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
	EventProbeFailed     EventKind = "probe_failed"
	// EventOperational is a GPU Operational Event. It is counted by its Sub.
	EventOperational EventKind = "operational"
	// EventErrorRecord is a Common Platform Error Record, with its severity as Sub.
	EventErrorRecord EventKind = "error_record"
	// EventDropped reports that the origin has dropped events, which count as lost.
	EventDropped EventKind = "dropped"
	// Of AMD's driver, by the kernel log.
	EventHang               EventKind = "hang"
	EventHangRecovered      EventKind = "hang_recovered"
	EventQueueReset         EventKind = "queue_reset"
	EventResetBegin         EventKind = "reset_begin"
	EventReset              EventKind = "reset"
	EventResetFailed        EventKind = "reset_failed"
	EventWedged             EventKind = "wedged"
	EventPCIeRecovery       EventKind = "pcie_recovery"
	EventPCIeRecoveryFailed EventKind = "pcie_recovery_failed"
	EventECCUncorrected     EventKind = "ecc_uncorrected"
	EventECCCorrected       EventKind = "ecc_corrected"
	EventECCDeferred        EventKind = "ecc_deferred"
	EventRetirementLimit    EventKind = "dram_retirement_limit"
	EventRetirementTable    EventKind = "dram_retirement_table"
	EventBootError          EventKind = "boot_error"
	EventThermalShutdown    EventKind = "thermal_shutdown"
	EventThrottled          EventKind = "throttled"
	EventFirmwareStuck      EventKind = "firmware_stuck"
	EventPageFault          EventKind = "page_fault"
	// Of the drivers of FPGAs, by the kernel log.
	EventFirewall      EventKind = "firewall_tripped"
	EventClocksStopped EventKind = "clocks_stopped"
	EventLoadFailed    EventKind = "load_failed"
	EventOverheating   EventKind = "overheating"
)

// eventBaseline are the kinds whose counters start at 0 with the first round of
// an NVIDIA GPU.
var eventBaseline = []EventKind{EventMIGConfig, EventRecoveryAction, EventUnavailable, EventECCDoubleBit}

// The Sub of an SXid, SubFatal also of an Xid of NVLink whose error is unknown: how the
// driver calls it.
const (
	SubFatal    = "fatal"
	SubNonfatal = "nonfatal"
)

// The Sub of an EventErrorRecord and of an EventOperational, beside SubFatal: its severity,
// or that it is no fault of the device. A propagated event has another event as its cause,
// a simulated event is a test.
const (
	SubInformational = "informational"
	SubCorrected     = "corrected"
	SubRecoverable   = "recoverable"
	SubOther         = "other"
	SubPropagated    = "propagated"
	SubSimulated     = "simulated"
)

// MaxRecord is the maximum length of Event.Record, in bytes.
const MaxRecord = 64 << 10

// MaxDetail is the maximum length of Event.Detail and Event.Sub, in bytes.
const MaxDetail = 500

// Event is something that happened between samples. A Source pushes it, so it is
// not lost between two scrapes.
type Event struct {
	// Time is when it happened according to its origin, else when the Sampler
	// received it.
	Time time.Time `json:"time"`
	// Source is the name of the Source that reported it.
	Source string `json:"source"`
	// Device is the ID of the whole device, also for an event of a partition.
	// A Source that does not know the ID leaves it empty and sets PCI.
	Device string `json:"device"`
	// PCI is the PCI address of the device as the kernel writes it:
	// 0000:1b:00.0. The Sampler finds the Device for it.
	PCI string `json:"pci_address,omitempty"`
	// Partition is the ID of the partition it is attributed to, or empty.
	Partition string `json:"partition,omitempty"`
	// Place is the partition for a Source that knows no IDs of partitions: the
	// GPU instance, and after a slash the compute instance, as the driver
	// numbers them. The Sampler finds the Partition for it.
	Place string    `json:"-"`
	Kind  EventKind `json:"kind"`
	// Code is the number of an EventXid or EventSXid, else the event data of
	// the origin.
	Code uint64 `json:"code"`
	// Sub distinguishes faults of one Code: the unit and error of an NVLink
	// Xid, the name of a PCIe error. It is a short token from a bounded set.
	Sub string `json:"sub,omitempty"`
	// Detail is the text of the origin: one line, at most MaxDetail bytes.
	Detail string `json:"detail,omitempty"`
	// Record is the content of an EventErrorRecord. It is in the News only.
	Record []byte `json:"-"`
	// Cause is the number of the earlier Xid that caused this one according to
	// the driver, or 0.
	Cause uint64 `json:"cause,omitempty"`
	// Action is the recovery that the driver requests with the event, one of
	// the values of accel_gpu_recovery_action, or empty.
	Action string `json:"action,omitempty"`
	// Past marks an event that was in its log before the exporter started. It
	// is judged and shown, but not counted.
	Past bool `json:"past,omitempty"`
	// Witnesses are the Sources that reported it, if more than one did. The
	// Sampler sets it.
	Witnesses []string `json:"witnesses,omitempty"`
}
