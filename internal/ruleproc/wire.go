package ruleproc

import (
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/strict"
)

// The frames of both directions, in the form of a worker's. Both ends are the
// same build, which the hello says, so there is one version of them.
const (
	frameHello    collector.FrameKind = iota + 32 // engine: hello
	frameRequest                                  // exporter: request
	frameAnswer                                   // engine: answer to a request
	frameTrigger                                  // exporter: nothing more
	frameGather                                   // engine: number of the page it wants
	framePage                                     // exporter: that number, what could not be gathered, newline, page
	frameMetrics                                  // engine: its own families as protobuf
	frameLog                                      // engine: a line of its log as JSON
	frameStanding                                 // engine: what the next one is to go on from, as it likes
)

// Settings are what an engine works by.
type Settings struct {
	// Rules are the rule files; without any the built-in rules hold.
	Rules []strict.Content `json:"rules"`
	// Config is the configuration file, of which the section alertmanager
	// counts. It has no name where there is none.
	Config strict.Content `json:"config"`
	// URLs are further Alertmanagers, from the command line.
	URLs []string `json:"urls"`
	// Interval, Labels and ExternalURL are those of rules.Options. They hold
	// from the start of the engine to its end.
	Interval    time.Duration     `json:"interval"`
	Labels      map[string]string `json:"labels"`
	ExternalURL string            `json:"external_url"`
	// Standing is what the engine before has last given to Parent.Stand.
	Standing []byte `json:"standing,omitempty"`
}

// Part is what of Settings is to be put into force.
type Part string

// The rules and the section alertmanager change each on its own.
const (
	Everything   Part = "everything"
	Rules        Part = "rules"
	Alertmanager Part = "alertmanager"
)

// operation is what a request asks for.
type operation string

const (
	opPrepare operation = "prepare" // checks a Part of Settings and keeps it
	opApply   operation = "apply"   // puts what was prepared by the request Prepared into force
	opReport  operation = "report"
	opPing    operation = "ping" // is answered between two evaluations
)

type request struct {
	ID       uint64    `json:"id"`
	Op       operation `json:"op"`
	Part     Part      `json:"part,omitempty"`
	Settings *Settings `json:"settings,omitempty"`
	Prepared uint64    `json:"prepared,omitempty"`
	Explain  bool      `json:"explain,omitempty"`
}

type answer struct {
	ID uint64 `json:"id"`
	// Mistakes and Error say what is wrong; of both there may be some.
	Mistakes strict.Mistakes `json:"mistakes,omitempty"`
	Error    string          `json:"error,omitempty"`
	// Endpoints is how many Alertmanagers the settings name.
	Endpoints int    `json:"endpoints,omitempty"`
	Report    []byte `json:"report,omitempty"`
}
