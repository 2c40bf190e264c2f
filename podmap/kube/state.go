package kube

import "time"

// State is the certainty of the pods, or of the devices.
type State string

// The states.
const (
	// StateNone: they are not read.
	StateNone State = ""
	// StateStarting: no request has ended yet.
	StateStarting State = "starting"
	// StateFresh: the API server has listed them and a watch follows changes.
	StateFresh State = "fresh"
	// StateStale: the latest request failed. The data is from before.
	StateStale State = "stale"
	// StateAbsent: requests fail, and there is no data from before.
	StateAbsent State = "absent"
)

// Status is the state of a Watcher.
type Status struct {
	Pods FeedStatus `json:"pods"`
	// Slices and Claims are nil unless slices are watched.
	Slices *FeedStatus `json:"slices,omitempty"`
	Claims *FeedStatus `json:"claims,omitempty"`
}

// FeedStatus is the state of one kind of objects.
type FeedStatus struct {
	State State `json:"state"`
	// Reason is the error of the latest request, if it failed.
	Reason string `json:"reason,omitempty"`
	// LastMessage is when the API server last sent something, including a
	// bookmark without a change. Age is the time since, or zero before the
	// first message. While a watch is open and nothing changes, an age of a
	// minute is normal; without progress events from etcd, an age of
	// five minutes.
	LastMessage time.Time     `json:"heard,omitzero"`
	Age         time.Duration `json:"age"`
	// Objects is the number of existing pods, known devices or known claims.
	Objects int `json:"objects"`
}

// progress is what the requests for one kind of objects have led to.
// Watcher.mu guards it.
type progress struct {
	ended  bool   // a request has ended
	failed string // why the latest request failed
	known  bool   // there is data
	heard  time.Time
}

func (p *progress) status(now time.Time, objects int) FeedStatus {
	s := FeedStatus{State: p.state(), Reason: p.failed, LastMessage: p.heard, Objects: objects}
	if !p.heard.IsZero() {
		s.Age = now.Sub(p.heard)
	}
	return s
}

func (p *progress) state() State {
	switch {
	case !p.ended:
		return StateStarting
	case p.failed == "":
		return StateFresh
	case p.known:
		return StateStale
	}
	return StateAbsent
}
