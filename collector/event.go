package collector

import "time"

// EventKind names what happened. It is the value of the label event of
// accel_device_events_total, but for EventXid, which has families of its own.
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
)

// eventKinds is every kind that accel_device_events_total may carry; an event
// of another kind is a bug of its Source and is counted as lost.
var eventKinds = []EventKind{
	EventMIGConfig, EventRecoveryAction, EventUnavailable, EventPoison, EventPoisonFatal,
	EventECCSingleBit, EventECCDoubleBit, EventSingleBitStorm, EventRetirement,
	EventRetirementError, EventPowerSource,
}

// eventBaseline are the kinds that stand at 0 for every NVIDIA GPU from its
// first round on.
var eventBaseline = []EventKind{EventMIGConfig, EventRecoveryAction, EventUnavailable, EventECCDoubleBit}

// Event is something that happened between samples. A Source delivers it by
// push, so that nothing is lost between two scrapes.
type Event struct {
	// Time is when its origin says that it happened, else when the Sampler
	// heard of it.
	Time time.Time `json:"time"`
	// Source is the name of the Source that witnessed it.
	Source string `json:"source"`
	// Device is the ID of the device it happened to: of the whole device,
	// even where one partition can be blamed.
	Device string `json:"device"`
	// Partition is the ID of the partition it is attributed to, or empty.
	Partition string    `json:"partition,omitempty"`
	Kind      EventKind `json:"kind"`
	// Code is the Xid number for EventXid, else the origin's event data.
	Code uint64 `json:"code"`
}
