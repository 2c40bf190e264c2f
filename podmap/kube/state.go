package kube

import (
	"maps"
	"time"
)

// State is the certainty of the pods, or of the devices.
type State string

// The states.
const (
	// StateStarting: no call has ended yet.
	StateStarting State = "starting"
	// StateFresh: the API server has listed them and a watch follows changes.
	StateFresh State = "fresh"
	// StateStale: the latest call failed. The data is from before.
	StateStale State = "stale"
	// StateDenied: the API server refuses, and there is no data from before.
	StateDenied State = "denied"
	// StateAbsent: the API server does not have such objects.
	StateAbsent State = "absent"
	// StateUnreachable: calls fail, and there is no data from before.
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
	OutcomeCertificate  Outcome = "certificate"  // the certificate is not valid for the server, or TLS failed
	OutcomeTimeout      Outcome = "timeout"      // no answer in time, or 504
	OutcomeUnauthorized Outcome = "unauthorized" // 401: the token is not accepted
	OutcomeForbidden    Outcome = "forbidden"    // 403: it lacks a permission, or the server has not read its rules yet
	OutcomeNotFound     Outcome = "not_found"    // 404: no such resource
	OutcomeThrottled    Outcome = "throttled"    // 429: the server requests a wait
	OutcomeExpired      Outcome = "expired"      // 410: the server no longer has the version of the watch
	OutcomeUnavailable  Outcome = "unavailable"  // 5xx, or the connection broke
	OutcomeTooLarge     Outcome = "too_large"    // an answer beyond a limit
	OutcomeGarbage      Outcome = "garbage"      // an answer that is no such list or watch
	OutcomeError        Outcome = "error"        // any other answer
)

// Outcomes lists every Outcome.
var Outcomes = []Outcome{
	OutcomeOK, OutcomeCredentials, OutcomeConnect, OutcomeCertificate, OutcomeTimeout, OutcomeUnauthorized,
	OutcomeForbidden, OutcomeNotFound, OutcomeThrottled, OutcomeExpired, OutcomeUnavailable, OutcomeTooLarge,
	OutcomeGarbage, OutcomeError,
}

// EventTypes lists the types of watch events, by the API's names.
var EventTypes = []string{"ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"}

// Status is the state of a Watcher.
type Status struct {
	Pods FeedStatus `json:"pods"`
	// Slices is nil where they are not watched.
	Slices *FeedStatus `json:"slices,omitempty"`
	// Claims are read where slices are watched, one by one: Lists counts the
	// requests.
	Claims *FeedStatus `json:"claims,omitempty"`
}

// FeedStatus is the state of one list and its watch.
type FeedStatus struct {
	State State `json:"state"`
	// Reason is why State is not fresh, in words; empty if it is.
	Reason string `json:"reason,omitempty"`
	// LastMessage is when the API server last sent something, including a
	// bookmark without a change. Age is the time since, or zero before the
	// first message. While a watch is open and nothing changes, an age of a
	// minute is normal; without progress events from etcd, an age of
	// five minutes.
	LastMessage time.Time     `json:"heard,omitzero"`
	Age         time.Duration `json:"age"`
	// Listed is the time of the latest list.
	Listed time.Time `json:"listed,omitzero"`
	// Watching: a watch is open.
	Watching bool `json:"watching"`
	// Lists and Watches count the requests that have ended, by outcome: a page
	// of a list is one.
	Lists   map[Outcome]uint64 `json:"lists"`
	Watches map[Outcome]uint64 `json:"watches"`
	// Events counts the events of watches, by type.
	Events map[string]uint64 `json:"events"`
	// Last is the outcome of the latest request that has ended. LastError stays
	// when requests succeed again.
	Last          Outcome   `json:"last,omitempty"`
	LastError     string    `json:"lastError,omitempty"`
	LastErrorTime time.Time `json:"lastErrorTime,omitzero"`
	// Objects is how many pods or devices are there, Kept how many are kept
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

// at returns a copy as of now that shares nothing that changes.
func (s FeedStatus) at(now time.Time) FeedStatus {
	s.Lists, s.Watches, s.Events = maps.Clone(s.Lists), maps.Clone(s.Watches), maps.Clone(s.Events)
	if !s.LastMessage.IsZero() {
		s.Age = now.Sub(s.LastMessage)
	}
	return s
}

// state returns the State, and the reason where it is not fresh. failing: the latest
// request failed. expired: the last message of the server is too old.
func (s *FeedStatus) state(failing, expired bool) (State, string) {
	switch {
	case s.Last == "":
		return StateStarting, ""
	case !failing && !s.Listed.IsZero():
		return StateFresh, ""
	case !failing:
		return StateStarting, "" // between two pages of the first list
	case !s.Listed.IsZero() && !expired:
		return StateStale, s.LastError
	case s.Last == OutcomeUnauthorized, s.Last == OutcomeForbidden:
		return StateDenied, s.LastError
	case s.Last == OutcomeNotFound:
		return StateAbsent, s.LastError
	}
	return StateUnreachable, s.LastError
}
