package simtest

import (
	"context"
	"os"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/sim"
)

// InChild runs the body of a test in a child process, which start begins, and
// returns its output.
func InChild(t testing.TB, start func() string, body func()) string {
	t.Helper()
	switch Child() {
	case "":
		return start()
	case t.Name():
		body()
	default:
		t.Skip("another test's process")
	}
	return ""
}

// Sampling is a Source under test in a child.
type Sampling struct {
	testing.TB
	// Opened returns the Source. It opens the Source where the test has not.
	Opened func() collector.Source
	Events chan collector.Event
}

// NewSampling returns the Sampling of a Source that emits to its Events.
func NewSampling(t testing.TB, opened func() collector.Source) Sampling {
	return Sampling{TB: t, Opened: opened, Events: make(chan collector.Event, 1024)}
}

// Emit is what the Source passes events to.
func (s *Sampling) Emit(e collector.Event) { s.Events <- e }

// Close closes the Source. It must leave no goroutine.
func (s *Sampling) Close() {
	s.Helper()
	if err := s.Opened().Close(); err != nil {
		s.Errorf("close: %v", err)
	}
	goleak.VerifyNone(s, goleak.IgnoreCurrent(), goleak.IgnoreTopFunction("testing.(*T).Run"), goleak.IgnoreTopFunction("testing.(*B).run1"))
}

// Sample makes one round with the timeout.
func (s *Sampling) Sample(timeout time.Duration) (collector.Round, error) {
	s.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return s.Opened().Sample(ctx)
}

// Patience is the time after which a round, or a condition, has failed. A passing test
// does not wait for it.
const Patience = 3 * time.Minute

// Round is Sample for a round that must be whole.
func (s *Sampling) Round() collector.Round {
	s.Helper()
	r, err := s.Sample(Patience)
	if err != nil {
		s.Fatalf("Sample: %v", err)
	}
	return r
}

// Until samples until ok is true.
func (s *Sampling) Until(what string, ok func(collector.Round, error) bool) collector.Round {
	s.Helper()
	return s.UntilWithin(Patience, what, ok)
}

// UntilWithin is Until with the timeout for each round.
func (s *Sampling) UntilWithin(timeout time.Duration, what string, ok func(collector.Round, error) bool) collector.Round {
	s.Helper()
	var last error
	for end := time.Now().Add(Patience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		r, err := s.Sample(timeout)
		if ok(r, err) {
			return r
		}
		last = err
	}
	s.Fatalf("never: %s (last error: %v)", what, last)
	return collector.Round{}
}

// Inject injects a fault into the machine.
func (s *Sampling) Inject(words ...string) {
	s.Helper()
	if err := sim.Update(os.Getenv(StateVar), func(st *sim.State) error { return st.Inject(words) }); err != nil {
		s.Fatalf("inject %v: %v", words, err)
	}
}

// Clear ends the faults of a device of the machine.
func (s *Sampling) Clear(device string) {
	s.Helper()
	if err := sim.Update(os.Getenv(StateVar), func(st *sim.State) error { return st.Clear(device) }); err != nil {
		s.Fatalf("clear %s: %v", device, err)
	}
}

// Values returns the readings of m whose labels begin with those given.
func Values(d collector.Device, m *collector.Metric, labels ...string) (list []float64) {
	for _, r := range d.Readings {
		if r.Metric == m && len(r.Labels) >= len(labels) && slices.Equal(r.Labels[:len(labels)], labels) {
			list = append(list, r.Value)
		}
	}
	return list
}

// Value returns the first of Values, if there is one.
func Value(d collector.Device, m *collector.Metric, labels ...string) (float64, bool) {
	list := Values(d, m, labels...)
	if len(list) == 0 {
		return 0, false
	}
	return list[0], true
}

// Whole returns the whole devices of a class, in the order of the round.
func Whole(r collector.Round, c collector.Class) (list []collector.Device) {
	for _, d := range r.Devices {
		if d.Class == c && d.Parent == "" {
			list = append(list, d)
		}
	}
	return list
}
