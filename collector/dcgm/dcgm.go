// Package dcgm is the Source of NVIDIA's Data Center GPU Manager. It reads what
// NVML does not have: profiling counters of boards without GPM, NVSwitches and
// their links, Grace CPUs, passive health checks, and any field that the
// configuration names. It runs in its own worker, so that a host
// engine or a libdcgm that hangs or crashes affects only these families.
//
// It guarantees three things beside the contract of a Source. A function that
// the installed library lacks is never called: the lazily bound call would end
// the process. A value that DCGM marks as "no value" is counted and never
// exported. Groups and watches are destroyed with the connection.
package dcgm

import (
	"fmt"
	"time"
)

// Name is the value of the label source.
const Name = "dcgm"

// Profiling modes.
const (
	// ProfilingAuto: on boards whose counters NVML does not have (before
	// Hopper).
	ProfilingAuto = "auto"
	ProfilingOn   = "on"
	ProfilingOff  = "off"
)

// Options configure a Source: an Address, or Embedded.
type Options struct {
	// Address is the host engine's; the zero value is none.
	Address Address
	// Embedded runs the host engine in this process.
	Embedded bool
	// Alone: no other Source reads the node's GPUs, so the families of NVML
	// come from DCGM.
	Alone bool
	// Fields are the ids of additional fields to watch.
	Fields []uint16
	// WatchInterval is the time between two updates of a watched field in the
	// host engine; 1 s where it is not positive.
	WatchInterval time.Duration
	// HealthInterval is the time between two health checks; 1 m where it is not
	// positive.
	HealthInterval time.Duration
	// Profiling is one of the modes above; empty is ProfilingAuto.
	Profiling string
}

// MaxFields bounds Options.Fields.
const MaxFields = 1024

const (
	// slowInterval is the time between two lists of the entities.
	slowInterval = 30 * time.Second
	// keepSamples and minKeepAge bound the samples that the host engine keeps
	// of a field of an entity.
	keepSamples = 2
	minKeepAge  = 10 * time.Second
	// minStale bounds the age from which a value is not shown: a busy host engine
	// is late by a few seconds.
	minStale = 5 * time.Second
)

// defaults sets the options that are zero.
func (o *Options) defaults() {
	if o.WatchInterval <= 0 {
		o.WatchInterval = time.Second
	}
	if o.HealthInterval <= 0 {
		o.HealthInterval = time.Minute
	}
	if o.Profiling == "" {
		o.Profiling = ProfilingAuto
	}
}

// keepAge is how long the host engine keeps a sample.
func (o *Options) keepAge() time.Duration { return max(minKeepAge, 3*o.WatchInterval) }

// stale is the age from which a value is not shown. The host engine keeps the last
// values of a device whose driver hangs.
func (o *Options) stale() time.Duration { return max(minStale, 3*o.WatchInterval) + o.WatchInterval }

// check rejects contradictory options.
func (o *Options) check() error {
	switch {
	case o.Embedded && o.Address != Address{}:
		return fmt.Errorf("both an address (%s) and the embedded host engine are set; one of them is accepted", o.Address)
	case !o.Embedded && o.Address == Address{}:
		return fmt.Errorf("neither an address nor the embedded host engine is set")
	case len(o.Fields) > MaxFields:
		return fmt.Errorf("%d fields; up to %d are accepted", len(o.Fields), MaxFields)
	}
	return nil
}
