package traceproc

import (
	"encoding/json"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
)

// The frames of both directions. Both ends are the same build, which the hello
// says, so there is one version of them.
const (
	frameHello    collector.FrameKind = iota + 64 // program: peer.Hello
	frameSettings                                 // exporter: Settings, once
	frameBatch                                    // exporter: batch
	frameAnswer                                   // program: answer to a batch
	frameLog                                      // program: a line of its log as JSON
)

// Settings are what the program works by.
type Settings struct {
	Endpoint Endpoint `json:"endpoint"`
	// HeadersFile and CAFile are those of the flags, "" where there is none.
	// The program reads them, so that no secret passes the pipes.
	HeadersFile string `json:"headers_file,omitempty"`
	CAFile      string `json:"ca_file,omitempty"`
	// Version is the exporter's, Host and Node what this machine is called, by
	// itself and by Kubernetes. What is not known is empty.
	Version string `json:"version"`
	Host    string `json:"host,omitempty"`
	Node    string `json:"node,omitempty"`
}

// batch is what is to be sent at once.
type batch struct {
	ID    uint64            `json:"id"`
	Spans []json.RawMessage `json:"spans"`
}

type answer struct {
	ID uint64 `json:"id"`
	Outcome
}

// Outcome is what became of a batch.
type Outcome struct {
	// Sent spans were taken by the receiver, Rejected ones were refused for
	// good, and Unsampled ones are not to be sent: the sampler left them out.
	Sent      int `json:"sent"`
	Rejected  int `json:"rejected,omitempty"`
	Unsampled int `json:"unsampled,omitempty"`
	// Retry says that none was taken, and that it is worth trying again, but
	// not before After has passed.
	Retry bool          `json:"retry,omitempty"`
	After time.Duration `json:"after,omitempty"`
	// Error says what is wrong, "" where nothing is.
	Error string `json:"error,omitempty"`
}
