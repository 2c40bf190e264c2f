package kube

import (
	"maps"
	"time"
)

// State says how much is known of the pods, or of the slices.
type State string

// The states.
const (
	// StateStarting: no call has ended yet.
	StateStarting State = "starting"
	// StateFresh: the API server has listed them and tells of changes.
	StateFresh State = "fresh"
	// StateStale: the latest call failed. What is told is from before.
	StateStale State = "stale"
	// StateDenied: the API server refuses, and there is nothing from before.
	StateDenied State = "denied"
	// StateAbsent: the API server does not have such objects.
	StateAbsent State = "absent"
	// StateUnreachable: calls fail, and there is nothing from before.
	StateUnreachable State = "unreachable"
)

// States lists every State, for a metric that has one series each.
var States = []State{StateStarting, StateFresh, StateStale, StateDenied, StateAbsent, StateUnreachable}

// Outcome is how one request ended.
type Outcome string

// The outcomes of a request.
const (
	OutcomeOK           Outcome = "ok"           // a list; or a watch that ended in order
	OutcomeCredentials  Outcome = "credentials"  // the token or the certificates cannot be read
	OutcomeConnect      Outcome = "connect"      // no connection: no route, refused, no such name
	OutcomeCertificate  Outcome = "certificate"  // the server is not the one, or TLS failed
	OutcomeTimeout      Outcome = "timeout"      // no answer in time, or 504
	OutcomeUnauthorized Outcome = "unauthorized" // 401: the token is not accepted
	OutcomeForbidden    Outcome = "forbidden"    // 403: it lacks a permission, or the server has not read its rules yet
	OutcomeNotFound     Outcome = "not_found"    // 404: no such resource
	OutcomeThrottled    Outcome = "throttled"    // 429: the server asks to come back later
	OutcomeExpired      Outcome = "expired"      // 410: the server does not remember where the watch was
	OutcomeUnavailable  Outcome = "unavailable"  // 5xx, or the connection broke
	OutcomeTooLarge     Outcome = "too_large"    // an answer beyond a limit of Options
	OutcomeGarbage      Outcome = "garbage"      // an answer that is no such list or watch
	OutcomeError        Outcome = "error"        // any other answer
)

// Outcomes lists every Outcome.
var Outcomes = []Outcome{
	OutcomeOK, OutcomeCredentials, OutcomeConnect, OutcomeCertificate, OutcomeTimeout, OutcomeUnauthorized,
	OutcomeForbidden, OutcomeNotFound, OutcomeThrottled, OutcomeExpired, OutcomeUnavailable, OutcomeTooLarge,
	OutcomeGarbage, OutcomeError,
}

// EventTypes lists what a watch can tell, by the API's names.
var EventTypes = []string{"ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"}

// Status says how the Watcher fares.
type Status struct {
	Pods FeedStatus `json:"pods"`
	// Slices is nil where they are not watched.
	Slices *FeedStatus `json:"slices,omitempty"`
}

// FeedStatus says how one list and its watch fare.
type FeedStatus struct {
	State State `json:"state"`
	// Reason says in words why State is not fresh; empty where it is.
	Reason string `json:"reason,omitempty"`
	// Heard is when the API server last said something, be it that nothing has
	// changed. Age is the time since, or zero before the first word. While a
	// watch is open and nothing changes, about a minute is normal, and where
	// the server's etcd does not tell of its progress, all of Options.Watch.
	LastMessage time.Time     `json:"heard,omitzero"`
	Age         time.Duration `json:"age"`
	// Listed is the time of the latest list.
	Listed time.Time `json:"listed,omitzero"`
	// Watching says that a watch is open.
	Watching bool `json:"watching"`
	// Lists and Watches count the requests that have ended, by outcome: a page
	// of a list is one.
	Lists   map[Outcome]uint64 `json:"lists"`
	Watches map[Outcome]uint64 `json:"watches"`
	// Events counts what watches told, by type.
	Events map[string]uint64 `json:"events"`
	// Last is the outcome of the latest request that has ended. LastError stays
	// when requests succeed again.
	Last          Outcome   `json:"last,omitempty"`
	LastError     string    `json:"lastError,omitempty"`
	LastErrorTime time.Time `json:"lastErrorTime,omitzero"`
	// Objects is how many pods or devices are there, Kept how many are told
	// beyond those: deleted pods, devices that no slice names.
	Objects int `json:"objects"`
	Kept    int `json:"kept"`
	// Malformed counts objects without a name or with another node's, and
	// labels and attributes that are too long. Overflow counts objects, labels
	// and devices beyond their limits.
	Malformed uint64 `json:"malformed"`
	Overflow  uint64 `json:"overflow"`
}

func newFeedStatus() FeedStatus {
	return FeedStatus{State: StateStarting, Lists: map[Outcome]uint64{}, Watches: map[Outcome]uint64{}, Events: map[string]uint64{}}
}

// clone returns a copy that shares nothing that changes.
func (s FeedStatus) clone() FeedStatus {
	s.Lists, s.Watches, s.Events = maps.Clone(s.Lists), maps.Clone(s.Watches), maps.Clone(s.Events)
	return s
}
