package pcie

import (
	"context"
	"fmt"
	"time"

	"github.com/accel-exporter/accel-exporter/collector/solo"
	"github.com/accel-exporter/accel-exporter/collector/sysfs"
)

// slot is one function that is read, and what it last said.
type slot struct {
	*solo.Worker[state]
	address string
	link    bool
	last    state
	// answered: last is an answer to go by; stuck: a read of it is overdue.
	answered, stuck bool
	// wanted: the bus has it. Without, the slot stays only as long as a read
	// of it has not returned, so that none goes behind it.
	wanted bool
	// told: what was rejected of last has been counted.
	told bool
	// sampled is when it last answered.
	sampled time.Time
	err     error
}

func newSlot(fs sysfs.FS, address string, link bool) *slot {
	f := newFunction(fs, address, link)
	return &slot{Worker: solo.New(f.look, nil), address: address, link: link}
}

// ask begins a read unless one is under way.
func (s *slot) ask(now time.Time, timeout time.Duration) {
	if late, ok := s.Poll(); ok {
		s.take(late)
		// What was asked for longer ago says no more how the function is now.
		s.answered = s.answered && now.Sub(s.Asked) <= timeout
	}
	s.Start(now)
}

func (s *slot) take(st state) {
	s.last, s.answered, s.stuck, s.told, s.err = st, true, false, false, nil
	if st.read && !st.silent {
		s.sampled = st.at
	}
	if st.err != nil {
		s.err = fmt.Errorf("%s: %w", s.address, st.err)
	}
}

// gather waits for the answer: until soon where there is an earlier one to go
// by, else until the round ends.
func (s *slot) gather(soon, end <-chan struct{}, timeout time.Duration) {
	if s.Busy && time.Since(s.Asked) < timeout {
		done := end
		if s.answered || s.stuck {
			done = soon
		}
		if st, ok := s.Await(done); ok {
			s.take(st)
		}
	}
	if s.Busy && (!s.answered || time.Since(s.Asked) >= timeout) {
		s.answered, s.stuck = false, true
		s.err = fmt.Errorf("read %s: has not returned: %w", s.address, context.DeadlineExceeded)
	}
}

// gone reports whether the function left the bus.
func (s *slot) gone() bool { return s.answered && s.last.gone }
