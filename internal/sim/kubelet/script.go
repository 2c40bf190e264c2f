package kubelet

import (
	"context"
	"fmt"
	"time"
)

// Step is one event of a kubelet.
type Step struct {
	// After is the time since the previous step.
	After time.Duration
	// Do is the name of the event, a key of Steps.
	Do string
	// Pods are the running pods from then on, for the steps pods and restart.
	Pods []Pod
	// Allocatable are the allocatable device ids, by resource, for the step
	// allocatable.
	Allocatable map[string][]string
	// Times is how many calls fail, for the step limit; 1 by default.
	Times int
}

// Steps are the steps by their names.
var Steps = map[string]func(*Server, Step) error{
	"pods":        func(s *Server, t Step) error { s.SetPods(t.Pods...); return nil },
	"allocatable": func(s *Server, t Step) error { s.SetAllocatable(t.Allocatable); return nil },
	"restart":     func(s *Server, t Step) error { return s.Restart(t.Pods...) },
	"stop":        func(s *Server, _ Step) error { s.Stop(); return nil },
	"start":       func(s *Server, _ Step) error { return s.Start() },
	"hang":        func(s *Server, _ Step) error { s.Hang(); return nil },
	"resume":      func(s *Server, _ Step) error { s.Resume(); return nil },
	"garbage":     func(s *Server, _ Step) error { s.Garbage(true); return nil },
	"sense":       func(s *Server, _ Step) error { s.Garbage(false); return nil },
	"old":         func(s *Server, _ Step) error { s.Old(true); return nil },
	"new":         func(s *Server, _ Step) error { s.Old(false); return nil },
	"limit": func(s *Server, t Step) error {
		for range max(t.Times, 1) {
			s.Fail(ErrRateLimited)
		}
		return nil
	},
}

// Play performs the steps in order, and returns when they are done, one fails
// or ctx ends.
func (s *Server) Play(ctx context.Context, steps []Step) error {
	for i, t := range steps {
		do, ok := Steps[t.Do]
		if !ok {
			return fmt.Errorf("step %d: no step is called %q", i+1, t.Do)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(t.After):
		}
		if err := do(s, t); err != nil {
			return fmt.Errorf("step %d (%s): %w", i+1, t.Do, err)
		}
	}
	return nil
}
