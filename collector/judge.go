package collector

import "time"

// Judge draws conclusions from a Snapshot.
type Judge interface {
	// Judge is called with every Snapshot before it is published, one at a
	// time and in order. It may append to the Readings of devices and to Node,
	// and set verdicts. It must not change the Snapshot
	// otherwise, keep it after the call, or block.
	Judge(s *Snapshot)
}

// Verdict is a Judge's conclusion about a device's health.
type Verdict struct {
	// State is healthy, degraded, failed or unknown.
	State string `json:"state"`
	// Action is the action that restores the device, or none.
	Action string `json:"action"`
	// Since is when State began.
	Since time.Time `json:"since,omitzero"`
	// Reasons are the reasons for State, the most severe first.
	Reasons []Reason `json:"reasons,omitempty"`
	// Faults are the latest events behind the reasons: all that is left of a fault that
	// no reading shows. The exporter judges them again after a restart.
	Faults []Event `json:"-"`
}

// Kinds of reasons that are no fault of the device.
const (
	ReasonLimit      = "limit"      // a sensor is beyond a critical limit
	ReasonThrottling = "throttling" // the device is slowed down by heat or power, or about to be
)

// Reason is one reason for the state of a device.
type Reason struct {
	// Code is from a bounded set: xid_79, row_remap_pending.
	Code string `json:"code"`
	// Text is a sentence.
	Text string `json:"text"`
	// Brief is the reason in a few words, for a message of one line: Xid 79.
	Brief string `json:"brief,omitempty"`
	// Kind is one of the Reason kinds, or empty.
	Kind string `json:"kind,omitempty"`
	// Severity is the state that follows from this reason alone.
	Severity string `json:"severity"`
	// Action is the action that follows from this reason alone.
	Action string `json:"action,omitempty"`
	// Since is when the reason began.
	Since time.Time `json:"since,omitzero"`
}
