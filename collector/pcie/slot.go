package pcie

import (
	"fmt"
	"time"

	"github.com/accel-exporter/accel-exporter/collector/solo"
	"github.com/accel-exporter/accel-exporter/collector/sysfs"
)

// slot is one function to read, with its last result.
type slot struct {
	solo.Slot[state]
	address string
	link    bool
	last    state
	// wanted: the function is on the bus. Otherwise the slot remains until its
	// read has returned, so that no second one is started.
	wanted bool
	// counted: the rejects of last have been counted.
	counted bool
	// sampled is when it last answered.
	sampled time.Time
	err     error
}

func newSlot(fs sysfs.FS, address string, link bool) *slot {
	f := &function{directory: openDirectory(fs, address), link: link}
	return &slot{Slot: solo.Slot[state]{Worker: solo.New(f.look, nil)}, address: address, link: link}
}

func (s *slot) take(st state) bool {
	s.last, s.counted, s.err = st, false, nil
	if st.read && !st.silent {
		s.sampled = st.at
	}
	if st.err != nil {
		s.err = fmt.Errorf("%s: %w", s.address, st.err)
	}
	return true
}

func (s *slot) gather(r *solo.Round) {
	s.Gather(r, s.take)
	if s.Stuck {
		s.err = solo.NotReturned(s.address)
	}
}

// gone reports whether the function left the bus.
func (s *slot) gone() bool { return s.Valid && s.last.gone }

// power is the kernel's power management state of a function. Reading it does
// not access the hardware.
type power struct {
	// state is power_state: D0, D3cold, unknown; or empty.
	state string
	// status is power/runtime_status: active, suspended, suspending, resuming,
	// error, unsupported; or empty.
	status string
}

// awake reports whether configuration space can be read without waking the
// function or a port above it. The kernel resumes a function in D3cold before
// it reads link attributes. A function whose state is unknown is not read.
func (p power) awake() bool {
	switch p.status {
	case "active":
		return p.state == "D0" || p.state == "unknown" || p.state == ""
	case "unsupported", "error", "":
		return p.state == "D0"
	}
	return false
}

// suspended reports whether runtime power management has suspended the
// function, and whether that is known.
func (p power) suspended() (asleep, known bool) {
	switch p.status {
	case "suspended", "suspending":
		return true, true
	case "active", "resuming":
		return false, true
	}
	return false, false
}
