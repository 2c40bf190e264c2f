// Package nvidia is the Source of NVIDIA GPUs. It reads NVML; a binary built
// without cgo returns an error instead.
//
// It guarantees three things beside the contract of a Source. A function that
// the installed driver lacks is never called, because the lazily bound call
// would end the process (exit 127): every call passes ask, which looks up its
// symbol first. A GPU whose driver call does not return delays no other GPU and
// gets no second call. Every return code other than success is counted.
package nvidia

import "time"

// Name is the value of the label source.
const Name = "nvidia"

// Options configure a Source. The zero value is usable.
type Options struct {
	// Library is the path of libnvidia-ml.so.1. Empty: search the folders of
	// drivers and container runtimes.
	Library string
	// SlowInterval is the time between two reads of slowly changing values; 10
	// s where it is not positive.
	SlowInterval time.Duration
	// Sysfs and Procfs are where these are mounted. Where one is empty, NUMA
	// nodes and GPUs that are bound later, or the PID namespace, are not known.
	Sysfs, Procfs string
	// OperationalEvents: receive GPU Operational Events, a preview of R615, where the
	// driver has them.
	OperationalEvents bool
	// ErrorRecords: read Common Platform Error Records where the driver has them.
	ErrorRecords bool
}

const (
	// steadyInterval is the time between two reads of what nothing is judged by within
	// seconds.
	steadyInterval      = 5 * time.Second
	defaultSlowInterval = 10 * time.Second
	// identityInterval is the time between two reads of what changes only by a
	// reset, a firmware update or a repair.
	identityInterval = time.Minute
)
