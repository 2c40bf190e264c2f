//go:build linux && cgo

package nvidia

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/sim"
	"github.com/accel-exporter/accel-exporter/internal/sim/simtest"
)

// A process can load one NVML only.
func TestMain(m *testing.M) { simtest.Main(m) }

// libraryEnv names the library to a child.
const libraryEnv = "NVIDIA_TEST_LIBRARY"

// inChild runs the test in a process with the scenario and initial faults, and
// returns its output.
func inChild(t testing.TB, scenario string, faults [][]string, body func(s *sampling)) string {
	t.Helper()
	switch simtest.Child() {
	case "":
	case t.Name():
		s := &sampling{TB: t}
		body(s)
		s.end()
		return ""
	default:
		t.Skip("another test's process")
	}
	state := filepath.Join(t.TempDir(), "state")
	missing := simtest.Install(t, state, scenario, sim.Options{}, faults...).Missing
	library := filepath.Join(simtest.Libraries(t, "nvml"), soname)
	if len(missing) > 0 {
		older := filepath.Join(t.TempDir(), soname)
		if err := sim.WithoutSymbols(library, older, missing); err != nil {
			t.Fatal(err)
		}
		library = older
	}
	return simtest.Run(t, state, libraryEnv+"="+library)
}

// sampling is a Source under test in a child process.
type sampling struct {
	testing.TB
	source *Source
	events chan collector.Event
	// leaks: a call hangs for good, so goroutines will be left.
	leaks bool
}

func (s *sampling) open(o Options) {
	s.Helper()
	if o.Library == "" {
		root := sim.Root(os.Getenv(simtest.StateVar))
		o.Library, o.Sysfs, o.Procfs = os.Getenv(libraryEnv), root+"/sys", root+"/proc"
	}
	s.events = make(chan collector.Event, 1024)
	s.source = New(o, func(e collector.Event) { s.events <- e })
}

func (s *sampling) end() {
	if s.source == nil {
		return
	}
	if !s.leaks {
		closeBound = time.Minute // nothing hangs, but the machine may be busy
	}
	if err := s.source.Close(); err != nil && !s.leaks {
		s.Errorf("close: %v", err)
	}
	if !s.leaks {
		goleak.VerifyNone(s, goleak.IgnoreCurrent(), goleak.IgnoreTopFunction("testing.(*T).Run"), goleak.IgnoreTopFunction("testing.(*B).run1"))
	}
}

// sample calls Sample with the timeout.
func (s *sampling) sample(timeout time.Duration) (collector.Round, error) {
	if s.source == nil {
		s.open(Options{})
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return s.source.Sample(ctx)
}

// round is sample for a round that must be whole.
func (s *sampling) round() collector.Round {
	s.Helper()
	r, err := s.sample(30 * time.Second)
	if err != nil {
		s.Fatalf("Sample: %v", err)
	}
	return r
}

// until samples until ok is true.
func (s *sampling) until(what string, ok func(collector.Round, error) bool) collector.Round {
	s.Helper()
	return s.untilWithin(2*time.Minute, what, ok)
}

// untilWithin is until with the timeout for each round.
func (s *sampling) untilWithin(timeout time.Duration, what string, ok func(collector.Round, error) bool) collector.Round {
	s.Helper()
	var last error
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		r, err := s.sample(timeout)
		if ok(r, err) {
			return r
		}
		last = err
	}
	s.Fatalf("never: %s (last error: %v)", what, last)
	return collector.Round{}
}

func (s *sampling) inject(words ...string) { s.Helper(); simtest.Inject(s, words...) }

func (s *sampling) clear(device string) { s.Helper(); simtest.Clear(s, device) }

// event waits for the next event.
func (s *sampling) event() collector.Event {
	s.Helper()
	select {
	case e := <-s.events:
		return e
	case <-time.After(30 * time.Second):
		s.Fatal("no event came")
		return collector.Event{}
	}
}

// value returns the reading of m with the labels, if it exists.
func value(d collector.Device, m *collector.Metric, labels ...string) (float64, error) {
	found, v := 0, 0.0
next:
	for _, r := range d.Readings {
		if r.Metric != m || len(r.Labels) < len(labels) {
			continue
		}
		for i, l := range labels {
			if r.Labels[i] != l {
				continue next
			}
		}
		found, v = found+1, r.Value
	}
	switch found {
	case 0:
		return 0, errAbsentReading
	case 1:
		return v, nil
	}
	return 0, fmt.Errorf("%s%v: %d readings", m.Name, labels, found)
}

var errAbsentReading = errors.New("absent")

// drained returns the events that are there.
func (s *sampling) drained() (list []collector.Event) {
	for len(s.events) > 0 {
		list = append(list, <-s.events)
	}
	return list
}

// next waits for an event of the kind and skips others.
func (s *sampling) next(kind collector.EventKind) collector.Event {
	s.Helper()
	for {
		if e := s.event(); e.Kind == kind {
			return e
		}
	}
}

// gpus returns the whole GPUs, in the order of the enumeration.
func gpus(r collector.Round) (list []collector.Device) {
	for _, d := range r.Devices {
		if d.Parent == "" {
			list = append(list, d)
		}
	}
	return list
}
