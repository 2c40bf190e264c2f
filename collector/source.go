package collector

import (
	"context"
	"errors"
	"time"
)

// Source reads the devices of one kind.
type Source interface {
	// Name is the value of the label source: lower case, stable.
	Name() string
	// Sample reads every device once. It returns what could be read and an
	// error that names what could not; both may be non-zero. The Round
	// belongs to the caller. Sample is called by one goroutine at a time and
	// should return when ctx is done, but may outlive it where a call into
	// the kernel or a library does not return. It neither logs nor retries.
	Sample(ctx context.Context) (Round, error)
	// Close frees what the Source holds. No Sample is in flight when it is
	// called, and none follows.
	Close() error
}

// Round is what one call of Sample yields.
type Round struct {
	Devices []Device
	// Node holds readings of PerNode families.
	Node []Reading
	// Distributions are the Histograms of the Source, with all that they
	// have counted since it was opened.
	Distributions []Distribution
	// Calls counts answers of the native library other than success since
	// the last Round.
	Calls []CallError
}

// CallError counts one function's answers with one code.
type CallError struct {
	Call  string // the library's name of the function, or of the field asked for
	Code  string // the library's name of the return code, lower case
	Count uint64
}

// Sentinel errors by which a Source says why it has nothing. The Sampler
// turns them into the label reason of accel_source_up.
var (
	// ErrAbsent: there is nothing for this Source on this machine (no driver
	// installed, no such bus). It is no fault.
	ErrAbsent = errors.New("nothing to read on this machine")
	// ErrReleased: told to keep every handle closed.
	ErrReleased = errors.New("released")
	// ErrCrashed: the worker process ended on its own.
	ErrCrashed = errors.New("worker ended")
	// ErrProtocol: the worker answered with something unintelligible.
	ErrProtocol = errors.New("garbage from the worker")
	// ErrBackoff: the worker is not restarted yet.
	ErrBackoff = errors.New("waiting to restart the worker")
	// ErrMismatch: the driver and its library have different versions.
	ErrMismatch = errors.New("driver and library versions differ")
	// ErrRestart: the library must be loaded anew, which takes a fresh
	// process: the driver was reloaded or replaced under this one.
	ErrRestart = errors.New("native library must be loaded anew")
	// ErrDriver: the driver is installed but not loaded or not answering.
	ErrDriver = errors.New("driver does not answer")
	// ErrEngine: the service that stands between the Source and the driver is
	// not there, has gone or refuses.
	ErrEngine = errors.New("host engine does not answer")
)

// Why a source is not up: the values of the label reason of accel_source_up.
const (
	SourceAbsent   = "absent"
	SourceReleased = "released"
	SourceCrashed  = "crashed"
	SourceGarbage  = "garbage"
	SourceTimeout  = "timeout"
	SourceMismatch = "version_mismatch"
	SourceDriver   = "driver"
	SourceReloaded = "driver_reloaded"
	SourceEngine   = "host_engine"
	SourceStarting = "starting"
	SourceError    = "error"
)

// reason maps the error of a Sample to the label value that names it.
func reason(err error) string {
	for _, r := range []struct {
		err    error
		reason string
	}{
		{ErrAbsent, SourceAbsent},
		{ErrReleased, SourceReleased},
		{ErrProtocol, SourceGarbage},
		{ErrCrashed, SourceCrashed},
		{ErrBackoff, SourceCrashed},
		{ErrMismatch, SourceMismatch},
		{ErrRestart, SourceReloaded},
		{ErrDriver, SourceDriver},
		{ErrEngine, SourceEngine},
		{context.DeadlineExceeded, SourceTimeout},
	} {
		if errors.Is(err, r.err) {
			return r.reason
		}
	}
	return SourceError
}

// Status is one Source's latest outcome. Health is said here and never
// inferred from the presence of data.
type Status struct {
	Source string `json:"source"`
	// Up: the last round was answered, perhaps in part.
	Up bool `json:"up"`
	// Reason is empty when up, else one of the Source constants.
	Reason string `json:"reason,omitempty"`
	// Err is the last round's error text: what could not be read, even when
	// Up.
	Err string `json:"error,omitempty"`
	// Stuck: the last round yielded nothing within its deadline, or has not
	// returned past it.
	Stuck bool `json:"stuck"`
	// Released: the last round answered ErrReleased.
	Released bool `json:"released"`
	// Took is how long the last finished round took.
	Took time.Duration `json:"took_ns"`
	// LastSuccess is when a round was last answered, perhaps in part; zero
	// until one has been.
	LastSuccess time.Time `json:"last_success,omitzero"`
}

// Snapshot is the state of everything at one moment. It is immutable once
// published.
type Snapshot struct {
	// Seq grows by one with every Snapshot.
	Seq uint64
	// Time is when the Snapshot was made; the devices say themselves when
	// they were read.
	Time time.Time
	// Sources are in the order in which they were added.
	Sources []Status
	// Devices are sorted by ID, partitions among them. Their Readings hold
	// every PerDevice series, the exporter's own verdict (accel_device_up)
	// included.
	Devices []Device
	// Node holds every PerNode series.
	Node []Reading
	// Distributions holds the series of every Histogram.
	Distributions []Distribution
	// Events are the most recent events, oldest first, bounded.
	Events []Event
	// News are the events since the Snapshot before, oldest first: each is in
	// the News of one Snapshot. Where a second witness told of an Xid, it is
	// there again, with Witnesses, since the second may say more.
	News []Event
	// Again is when a Judge wants to judge once more, whatever happens: zero
	// where none does. A Snapshot is published then.
	Again time.Time
}
