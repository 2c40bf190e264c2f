package pcie

import (
	"context"
	"fmt"
	"time"

	"github.com/accel-exporter/accel-exporter/collector/solo"
	"github.com/accel-exporter/accel-exporter/collector/sysfs"
)

// slot is one function to read, with its last result.
type slot struct {
	*solo.Worker[state]
	address string
	link    bool
	last    state
	// answered: last is valid; stuck: a read is overdue.
	answered, stuck bool
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
	f := newFunction(fs, address, link)
	return &slot{Worker: solo.New(f.look, nil), address: address, link: link}
}

// ask starts a read unless one is in flight.
func (s *slot) ask(now time.Time, timeout time.Duration) {
	if late, ok := s.Poll(); ok {
		s.take(late)
		// An older answer does not describe the current state.
		s.answered = s.answered && now.Sub(s.Asked) <= timeout
	}
	s.Start(now)
}

func (s *slot) take(st state) {
	s.last, s.answered, s.stuck, s.counted, s.err = st, true, false, false, nil
	if st.read && !st.silent {
		s.sampled = st.at
	}
	if st.err != nil {
		s.err = fmt.Errorf("%s: %w", s.address, st.err)
	}
}

// gather waits for the answer: until soon where a previous one exists, else
// until the end of the round.
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
