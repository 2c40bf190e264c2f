//go:build linux && cgo

package nvidia

import (
	"context"
	"fmt"
	"time"
)

// closeBound is how long Close waits for calls in flight.
var closeBound = 2 * time.Second

// Close implements collector.Source. It waits up to closeBound for calls in
// flight. Where one does not return, the library stays loaded.
func (s *Source) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeBound)
	defer cancel()
	if s.driver == nil {
		if s.opening != nil {
			s.opening.Stop()
			if !s.opening.Stopped(ctx.Done()) {
				return fmt.Errorf("nvmlInit has not returned: %w", context.DeadlineExceeded)
			}
		}
		return nil
	}
	s.driver.Stop()
	for _, slot := range s.gpus {
		slot.Stop()
	}
	s.events.stop()
	ended := s.driver.Stopped(ctx.Done())
	for _, slot := range s.gpus {
		ended = slot.Stopped(ctx.Done()) && ended
	}
	for _, slot := range s.leaving {
		ended = slot.Stopped(ctx.Done()) && ended
	}
	ended = s.events.stopped(ctx.Done()) && ended
	if !ended {
		return fmt.Errorf("a call has not returned: %w", context.DeadlineExceeded)
	}
	s.lib.shutdown(&s.system.asker)
	return nil
}
