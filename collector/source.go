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
	// error that names what could not; both may be non-zero. The caller owns
	// the Round. One goroutine at a time calls Sample. It should return when
	// ctx is done, but may outlive it where a call into the kernel or a
	// library does not return. It neither logs nor retries.
	Sample(ctx context.Context) (Round, error)
	// Close frees the resources of the Source. No Sample is in flight when it
	// is called, and none follows.
	Close() error
}

// Round is the result of one call of Sample.
type Round struct {
	Devices []Device
	// Node has the readings of PerNode families.
	Node []Reading
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

// Sentinel errors: why a Source has nothing. The Sampler converts them to the
// label reason of accel_source_up.
var (
	// ErrAbsent: there is nothing for this Source on this machine (no driver
	// installed, no such bus). It is not a fault.
	ErrAbsent = errors.New("nothing to read on this machine")
	// ErrReleased: every handle must stay closed.
	ErrReleased = errors.New("released")
	// ErrCrashed: the worker process ended on its own.
	ErrCrashed = errors.New("worker ended")
	// ErrProtocol: the answer of the worker is invalid.
	ErrProtocol = errors.New("garbage from the worker")
	// ErrBackoff: the worker is not restarted yet.
	ErrBackoff = errors.New("waiting to restart the worker")
	// ErrMismatch: the driver and its library have different versions.
	ErrMismatch = errors.New("driver and library versions differ")
	// ErrRestart: the driver was reloaded or replaced, or drives another GPU, so
	// the library must be loaded again, by a new process.
	ErrRestart = errors.New("native library must be reloaded")
	// ErrDriver: the driver is installed but not loaded or not answering.
	ErrDriver = errors.New("driver does not answer")
	// ErrLibrary: the driver is loaded, and its library cannot be opened.
	ErrLibrary = errors.New("driver without its library")
	// ErrEngine: the service between the Source and the driver is absent or
	// refuses.
	ErrEngine = errors.New("host engine does not answer")
)

// Reasons why a source is not up: the label reason of accel_source_up.
const (
	SourceAbsent   = "absent"
	SourceReleased = "released"
	SourceCrashed  = "crashed"
	SourceGarbage  = "garbage"
	SourceTimeout  = "timeout"
	SourceMismatch = "version_mismatch"
	SourceDriver   = "driver"
	SourceLibrary  = "library"
	SourceReloaded = "driver_reloaded"
	SourceEngine   = "host_engine"
	SourceStarting = "starting"
	SourceError    = "error"
)

// reason returns the label value for the error of a Sample.
func reason(err error) string {
	for _, r := range []struct {
		err    error
		reason string
	}{
		{ErrAbsent, SourceAbsent},
		{ErrReleased, SourceReleased},
		{ErrProtocol, SourceGarbage},
		{ErrCrashed, SourceCrashed},
		{ErrMismatch, SourceMismatch},
		{ErrRestart, SourceReloaded},
		{ErrDriver, SourceDriver},
		{ErrLibrary, SourceLibrary},
		{ErrEngine, SourceEngine},
		{context.DeadlineExceeded, SourceTimeout},
		{ErrBackoff, SourceCrashed},
	} {
		if errors.Is(err, r.err) {
			return r.reason
		}
	}
	return SourceError
}

// Status is the latest outcome of one Source. Health is reported here and never
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
	// Time is when the Snapshot was made. Device.Sampled is when a device was
	// read.
	Time time.Time
	// Sources are in the order in which they were added.
	Sources []Status
	// Devices are sorted by ID, partitions included. Their Readings are every
	// PerDevice series, including accel_device_up.
	Devices []Device
	// Node has every PerNode series.
	Node []Reading
	// Events are the most recent events, oldest first, bounded.
	Events []Event
	// News are the events since the previous Snapshot, oldest first. Each is
	// in the News of one Snapshot, with two exceptions: an Xid that a second
	// witness reports is repeated, with Witnesses and the details that the second
	// adds, and an event of a PCI address is repeated once the device there is
	// known.
	News []Event
	// Again is when a Judge requests another Snapshot, zero where none does.
	Again time.Time
	// Panics are the panics of Judges in this Snapshot, with their stacks. What such
	// a Judge concludes is missing.
	Panics []string
}
