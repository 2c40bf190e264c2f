package solo

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Patience is how long a round waits for a device that is slower than the
// others. After that its earlier answer is used until its own call is overdue.
const Patience = 500 * time.Millisecond

// Round is one round of a Source.
type Round struct {
	Begun time.Time
	// Timeout is the age at which a call is overdue.
	Timeout time.Duration
	// Soon ends the wait for a device with a valid earlier answer, End each wait.
	Soon, End <-chan struct{}
}

// Begin starts a round. It ends a twentieth before ctx's deadline, so that the
// result arrives before the caller gives up.
func Begin(ctx context.Context) (*Round, context.CancelFunc) {
	r := &Round{Begun: time.Now(), Timeout: time.Minute}
	if deadline, ok := ctx.Deadline(); ok {
		left := deadline.Sub(r.Begun)
		r.Timeout = left - min(left/20, 100*time.Millisecond)
	}
	end, cancel := context.WithTimeout(ctx, r.Timeout)
	soon, cancelSoon := context.WithTimeout(end, min(Patience, r.Timeout/2))
	r.Soon, r.End = soon.Done(), end.Done()
	return r, func() { cancelSoon(); cancel() }
}

// Slot is a Worker whose earlier answer is used while it is slow.
type Slot[T any] struct {
	*Worker[T]
	// Valid: the last answer may be used. Stuck: there is none, because the call
	// in flight is overdue.
	Valid, Stuck bool
}

// Ask starts the call of a round, unless an earlier one is in flight. An answer
// older than the round's timeout is out of date. take stores an answer and
// reports whether it may be used.
func (s *Slot[T]) Ask(r *Round, take func(T) bool) {
	if late, ok := s.Poll(); ok {
		s.Valid, s.Stuck = take(late) && r.Begun.Sub(s.Asked) <= r.Timeout, false
	}
	s.Start(r.Begun)
}

// Gather waits for the answer and makes a Slot stuck whose call is overdue.
func (s *Slot[T]) Gather(r *Round, take func(T) bool) {
	if s.Busy && r.Begun.Sub(s.Asked) < r.Timeout {
		done := r.End
		if s.Valid {
			done = r.Soon
		}
		if answer, ok := s.Await(done); ok {
			s.Valid, s.Stuck = take(answer), false
		}
	}
	if s.Busy && (!s.Valid || time.Since(s.Asked) >= r.Timeout) {
		s.Valid, s.Stuck = false, true
	}
}

// NotReturned is the error of a call that is overdue.
func NotReturned(what string) error {
	return fmt.Errorf("read %s: has not returned: %w", what, context.DeadlineExceeded)
}

// Close stops Workers, whose keys name them in errors, and waits for their
// calls.
func Close[W interface {
	Stop()
	Stopped(done <-chan struct{}) bool
}](done <-chan struct{}, workers map[string]W) error {
	for _, w := range workers {
		w.Stop()
	}
	var errs []error
	for what, w := range workers {
		if !w.Stopped(done) {
			errs = append(errs, NotReturned(what))
		}
	}
	return errors.Join(errs...)
}
