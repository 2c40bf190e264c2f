// Package dcgm is the Source of what NVIDIA's Data Center GPU Manager knows
// beyond NVML: profiling counters of boards without GPM, NVSwitches and their
// links, Grace CPUs, passive health checks, policy violations, and any field
// that the configuration names. It runs in a worker of its own, so that a host
// engine or a libdcgm that hangs or crashes costs only what it alone gives.
//
// It keeps three promises beside the Source's own. A function that the
// installed library lacks is never called: the lazily bound call would end the
// process. Whatever DCGM marks as no value is counted and never a sample.
// Groups and watches are the connection's, and go with it.
package dcgm

import (
	"fmt"
	"time"
)

// Name is the value of the label source.
const Name = "dcgm"

// Profiling modes.
const (
	// ProfilingAuto: on boards whose counters NVML cannot give (before Hopper).
	ProfilingAuto = "auto"
	ProfilingOn   = "on"
	ProfilingOff  = "off"
)

// Options configure a Source: an Address, or Embedded.
type Options struct {
	// Address of the host engine; its zero value stands for none.
	Address Address
	// Embedded has the host engine run in this process.
	Embedded bool
	// Alone: no other Source reads the node's GPUs, so the families that NVML
	// would give come from DCGM.
	Alone bool
	// Fields are the ids of further fields to watch.
	Fields []uint16
	// WatchInterval is the time between two updates of a watched field in the
	// host engine; 1 s where it is not positive.
	WatchInterval time.Duration
	// HealthInterval is the time between two health checks; 1 m where it is
	// not positive.
	HealthInterval time.Duration
	// Profiling is one of the modes above; empty is ProfilingAuto.
	Profiling string
	// Policy: be told of policy violations.
	Policy bool
	// Processes has the driver account for processes, and reads the accounts.
	Processes bool
	// AccountInterval is the time between two reads of them; 10 s where it is
	// not positive.
	AccountInterval time.Duration
}

// MaxFields bounds Options.Fields.
const MaxFields = 1024

const (
	// slowInterval is the time between two looks at which entities there are.
	slowInterval = 30 * time.Second
	// keepSamples and minKeepAge bound what the host engine remembers of a
	// field of an entity.
	keepSamples = 2
	minKeepAge  = 10 * time.Second
)

// defaults fills in what was left open.
func (o *Options) defaults() {
	if o.WatchInterval <= 0 {
		o.WatchInterval = time.Second
	}
	if o.HealthInterval <= 0 {
		o.HealthInterval = time.Minute
	}
	if o.AccountInterval <= 0 {
		o.AccountInterval = 10 * time.Second
	}
	if o.Profiling == "" {
		o.Profiling = ProfilingAuto
	}
}

// keepAge is how long the host engine keeps a sample.
func (o *Options) keepAge() time.Duration { return max(minKeepAge, 3*o.WatchInterval) }

// check refuses what cannot be meant.
func (o *Options) check() error {
	switch {
	case o.Embedded && o.Address != Address{}:
		return fmt.Errorf("both an address (%s) and the embedded host engine are asked for; one of them is accepted", o.Address)
	case !o.Embedded && o.Address == Address{}:
		return fmt.Errorf("neither an address nor the embedded host engine is asked for")
	case len(o.Fields) > MaxFields:
		return fmt.Errorf("%d fields; up to %d are accepted", len(o.Fields), MaxFields)
	}
	return nil
}
