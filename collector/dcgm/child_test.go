//go:build linux && cgo

package dcgm

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/sim"
	"github.com/accel-exporter/accel-exporter/internal/sim/simtest"
)

// A process has one libdcgm and one connection in its life.
func TestMain(m *testing.M) { simtest.Main(m) }

// libraryEnv may name the folder of a simulated library that is built.
const libraryEnv = "DCGM_TEST_LIBRARY"

// setting is the set-up of a test of the simulated library.
type setting struct {
	scenario string
	faults   [][]string // present from the start
	missing  []string   // functions that the library shall not have
	none     bool       // no library at all
}

// inChild runs the test in a process with the setting and returns its output.
func inChild(t testing.TB, set setting, body func(s *sampling)) string {
	t.Helper()
	switch simtest.Child() {
	case "":
	case t.Name():
		s := &sampling{TB: t, events: make(chan collector.Event, 1024)}
		body(s)
		s.end()
		return ""
	default:
		t.Skip("another test's process")
	}
	state := filepath.Join(t.TempDir(), "state")
	simtest.Install(t, state, set.scenario, sim.Options{}, set.faults...)
	return simtest.Run(t, state, "LD_LIBRARY_PATH="+set.library(t))
}

// library is the folder of the library.
func (set *setting) library(t testing.TB) string {
	t.Helper()
	if set.none {
		return t.TempDir()
	}
	dir := os.Getenv(libraryEnv)
	if dir == "" {
		dir = simtest.Libraries(t, "dcgm")
	}
	if len(set.missing) == 0 {
		return dir
	}
	older := t.TempDir()
	if err := sim.WithoutSymbols(filepath.Join(dir, soname), filepath.Join(older, soname), set.missing); err != nil {
		t.Fatal(err)
	}
	return older
}

// sampling is a Source under test in a child process.
type sampling struct {
	testing.TB
	source *Source
	events chan collector.Event
	leaks  bool // a call hangs for good, or the library is at fault
}

// open makes the Source, with a short interval of the watches so that tests do
// not wait.
func (s *sampling) open(o Options) {
	s.Helper()
	if o.Address == (Address{}) {
		o.Embedded = true
	}
	if o.WatchInterval == 0 {
		o.WatchInterval = 10 * time.Millisecond
	}
	var err error
	if s.source, err = New(o, func(e collector.Event) { s.events <- e }); err != nil {
		s.Fatal(err)
	}
}

func (s *sampling) end() {
	if s.source == nil || s.leaks {
		return
	}
	if err := s.source.Close(); err != nil {
		s.Errorf("close: %v", err)
	}
	goleak.VerifyNone(s, goleak.IgnoreCurrent(), goleak.IgnoreTopFunction("testing.(*T).Run"), goleak.IgnoreTopFunction("testing.(*B).run1"))
}

// sample makes one round.
func (s *sampling) sample() (collector.Round, error) {
	if s.source == nil {
		s.open(Options{})
	}
	return s.source.Sample(context.Background())
}

// round is sample without an error.
func (s *sampling) round() collector.Round {
	s.Helper()
	r, err := s.sample()
	if err != nil {
		s.Fatalf("Sample: %v", err)
	}
	return r
}

// until samples until ok is true.
func (s *sampling) until(what string, ok func(collector.Round, error) bool) collector.Round {
	s.Helper()
	var last error
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		r, err := s.sample()
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

// value returns the reading of m with the labels, if there is one.
func value(d collector.Device, m *collector.Metric, labels ...string) (float64, bool) {
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
		return r.Value, true
	}
	return 0, false
}

// allHave reports whether every device has the reading of m with the labels.
func allHave(r collector.Round, m *collector.Metric, labels ...string) bool {
	return !slices.ContainsFunc(r.Devices, func(d collector.Device) bool { _, has := value(d, m, labels...); return !has })
}

// class returns the whole devices of a class.
func class(r collector.Round, c collector.Class) (list []collector.Device) {
	for _, d := range r.Devices {
		if d.Class == c && d.Parent == "" {
			list = append(list, d)
		}
	}
	return list
}

// calls are the counts of a round, by call and code.
func calls(r collector.Round) map[string]uint64 {
	m := map[string]uint64{}
	for _, c := range r.Calls {
		m[c.Call+" "+c.Code] += c.Count
	}
	return m
}
