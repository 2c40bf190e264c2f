package podmap

import (
	"maps"
	"time"
)

// State is the certainty of a Map.
type State string

// The states of a Map.
const (
	// StateStarting: no call has ended yet.
	StateStarting State = "starting"
	// StateAbsent: there is no socket and there never was one. This is what a
	// machine outside Kubernetes looks like.
	StateAbsent State = "absent"
	// StateFresh: the latest call was answered, and the list is complete.
	StateFresh State = "fresh"
	// StateUnconfirmed: the latest call was answered, but the list may lack
	// running pods. Missing allocations are kept.
	StateUnconfirmed State = "unconfirmed"
	// StateStale: the latest call failed. The allocations are from before.
	StateStale State = "stale"
	// StateUnreachable: calls fail, and there are no allocations from before:
	// there never was a list, or it has expired.
	StateUnreachable State = "unreachable"
)

// States lists every State, for a metric that has one series each.
var States = []State{StateStarting, StateAbsent, StateFresh, StateUnconfirmed, StateStale, StateUnreachable}

// Outcome is how one call of the kubelet ended.
type Outcome string

// The outcomes of a call.
const (
	OutcomeOK            Outcome = "ok"
	OutcomeNoSocket      Outcome = "no_socket"     // nothing at the path
	OutcomeDenied        Outcome = "denied"        // no permission for the socket, or the kubelet refuses
	OutcomeRefused       Outcome = "refused"       // no process listens on the socket
	OutcomeUnavailable   Outcome = "unavailable"   // the connection broke
	OutcomeTimeout       Outcome = "timeout"       // no answer within Options.Timeout
	OutcomeRateLimited   Outcome = "rate_limited"  // the clients of the socket together exceed the kubelet's rate limit
	OutcomeTooLarge      Outcome = "too_large"     // an answer larger than 64 MiB
	OutcomeUnimplemented Outcome = "unimplemented" // a kubelet without this API
	OutcomeGarbage       Outcome = "garbage"       // an answer that is no PodResources message
	OutcomeError         Outcome = "error"         // any other error of the kubelet
)

// Status is the state of a Watcher.
type Status struct {
	State State `json:"state"`
	// Reason is why State is not fresh, in words; empty if it is.
	Reason string `json:"reason,omitempty"`
	// Reachable: the latest call was answered.
	Reachable bool `json:"reachable"`
	// Time and Confirmed are the times of the Map. Age is the time since Time, or
	// zero before the first answer.
	Time      time.Time     `json:"time,omitzero"`
	Confirmed time.Time     `json:"confirmed,omitzero"`
	Age       time.Duration `json:"age"`
	// Took is how long the latest List took, answered or not.
	Took time.Duration `json:"took"`
	// Calls counts the calls of List by outcome. A poll that finds no socket
	// counts as one.
	Calls map[Outcome]uint64 `json:"calls"`
	// Last is the outcome of the latest List, and LastError the latest error of
	// either call, which stays when calls succeed again.
	Last      Outcome `json:"last,omitempty"`
	LastError string  `json:"lastError,omitempty"`

	// Of the Map: pods listed, allocations, and allocations that are kept and
	// contested.
	Pods        int `json:"pods"`
	Allocations int `json:"holders"`
	Kept        int `json:"kept"`
	Contested   int `json:"contested"`
}

// clone returns a copy that shares nothing that changes.
func (s Status) clone() Status {
	s.Calls = maps.Clone(s.Calls)
	return s
}
