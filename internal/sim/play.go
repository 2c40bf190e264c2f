package sim

import (
	"context"
	"time"
)

// later is a step of a fault with a duration, at a time after the previous
// step.
type later struct {
	after time.Duration
	do    func(*State) error
}

// then adds a step to the current fault.
func (s *State) then(after time.Duration, do func(*State) error) {
	s.later = append(s.later, later{after, do})
}

// finish performs the remaining steps at once.
func (s *State) finish() error {
	for len(s.later) > 0 {
		next := s.later[0]
		s.later = s.later[1:]
		if err := next.do(s); err != nil {
			return err
		}
	}
	return nil
}

// Play applies a fault to the simulation at a state file, with arguments and
// flags by name, and returns when it is over: a reconfiguration takes its time.
// Where ctx ends first, the fault stays as it is.
func (f *Fault) Play(ctx context.Context, path string, given map[string]string) error {
	steps := []later{{0, func(s *State) error { return f.begin(s, given) }}}
	for len(steps) > 0 {
		next := steps[0]
		timer := time.NewTimer(next.after)
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-timer.C:
		}
		err := Update(path, func(s *State) error {
			err := next.do(s)
			steps = append(steps[1:], s.later...)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
