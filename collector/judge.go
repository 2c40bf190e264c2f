package collector

import "time"

// Judge draws conclusions from what the Sources yielded.
type Judge interface {
	// Judge is called with every Snapshot before it is published, one at a
	// time and in order. It may append to the Readings of devices, to Node and
	// to Distributions, and set verdicts; what it was given it must not change
	// otherwise, nor keep beyond the call. It must not block.
	Judge(s *Snapshot)
}

// Verdict is what a Judge concluded of a device's health.
type Verdict struct {
	// State is healthy, degraded, failed or unknown.
	State string `json:"state"`
	// Action is what would bring the device back to health, or none.
	Action string `json:"action"`
	// Since is when the device came into State.
	Since time.Time `json:"since,omitzero"`
	// Reasons are the facts behind State, the gravest first.
	Reasons []Reason `json:"reasons,omitempty"`
}

// Reason is one fact that speaks against a device.
type Reason struct {
	// Code names the fact: xid_79, row_remap_pending. It is of a bounded set.
	Code string `json:"code"`
	// Text says it in a sentence.
	Text string `json:"text"`
	// Severity is the state that it alone would put the device in.
	Severity string `json:"severity"`
	// Action is what it alone would ask for.
	Action string `json:"action,omitempty"`
	// Since is when it began.
	Since time.Time `json:"since,omitzero"`
}
