// Package nvidia is the Source of NVIDIA GPUs. It reads NVML and, where the
// binary was built without cgo, says so.
//
// It keeps three promises beside the Source's own. A function that the
// installed driver lacks is never called, because the lazily bound call would
// end the process (exit 127): every call passes ask, which looks its symbol up
// first. A GPU whose driver call does not return costs no other GPU, and gets
// no second call behind the first. Every answer of the library other than
// success is counted.
package nvidia

import "time"

// Name is the value of the label source.
const Name = "nvidia"

// Options configure a Source. The zero value is usable.
type Options struct {
	// Library is the path of libnvidia-ml.so.1; empty means to look for it
	// where drivers and container runtimes put it.
	Library string
	// SlowInterval is the time between two readings of what changes slowly;
	// 10 s where it is not positive.
	SlowInterval time.Duration
}

const (
	defaultSlowInterval = 10 * time.Second
	// identityInterval is the time between two readings of what only a
	// reset, a firmware update or a repair changes.
	identityInterval = time.Minute
)
