package collector

import (
	"strings"
	"time"
)

// Bounds on the memory that a source can cause.
const (
	maxDevices = 4096 // devices of a source, with the missing ones
	maxUnknown = 64   // devices known by an event only
	maxXids    = 256  // Xid numbers per device
	maxErrText = 2000
)

// sourceState is the state of one source: its latest round, and the counters that
// outlive a device, a round and a worker.
type sourceState struct {
	src     Source
	names   []string // the source's name, as the values of a label
	covers  []Cover
	wake    chan struct{} // capacity 1: the next round is due now
	status  Status
	node    []Reading // of the latest round; without gauges after a failure
	devices map[string]*deviceState

	begun    time.Time // of the round in flight, zero without one
	ticked   time.Time // of the last tick, in which a round began or was in flight
	late     bool      // the round in flight has been given up
	inFlight bool      // a Sample has outlived the Sampler's loop

	rounds   [3]float64 // by outcome
	exits    cells
	rejected cells
	calls    cells
	lost     float64
}

// newSourceState returns the state before the first round.
func newSourceState(src Source) *sourceState {
	return &sourceState{
		src:      src,
		names:    []string{src.Name()},
		wake:     make(chan struct{}, 1),
		status:   Status{Source: src.Name(), Reason: SourceStarting},
		devices:  map[string]*deviceState{},
		exits:    cells{metric: SourceRestarts},
		rejected: cells{metric: SourceRejected},
		calls:    cells{metric: NativeCallErrors},
	}
}

func clipText(s string) string {
	if len(s) > maxErrText {
		s = s[:maxErrText] + "…"
	}
	return strings.ToValidUTF8(s, "?")
}

// deviceState is the state of one device.
type deviceState struct {
	device  Device // as last seen; Readings as last read with success
	down    string // Device.Down of the latest round, or ReasonMissing
	missing time.Time
	totals  totals
	// recalled: its identity is from Recall, and it has not answered since.
	recalled bool
}
