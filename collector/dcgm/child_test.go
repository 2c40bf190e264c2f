//go:build linux && cgo

package dcgm

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/sim"
	"github.com/accel-exporter/accel-exporter/internal/sim/simtest"
)

// A process has one libdcgm and one connection in its life.
func TestMain(m *testing.M) { simtest.Main(m) }

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
	return simtest.InChild(t, func() string {
		state := filepath.Join(t.TempDir(), "state")
		simtest.Install(t, state, set.scenario, sim.Options{}, set.faults...)
		library := t.TempDir()
		if !set.none {
			library = simtest.WithoutSymbols(t, simtest.Libraries(t, "dcgm"), soname, set.missing)
		}
		return simtest.Run(t, state, "LD_LIBRARY_PATH="+library)
	}, func() {
		s := &sampling{}
		s.Sampling = simtest.NewSampling(t, func() collector.Source {
			if s.source == nil {
				s.open(Options{})
			}
			return s.source
		})
		body(s)
		if !s.leaks {
			s.Close()
		}
	})
}

// sampling is a Source under test in a child process.
type sampling struct {
	simtest.Sampling
	source *Source
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
	if s.source, err = New(o, s.Emit); err != nil {
		s.Fatal(err)
	}
}

// value returns the first reading of m with the labels, if there is one.
var value = simtest.Value

// allHave reports whether every device has the reading of m with the labels.
func allHave(r collector.Round, m *collector.Metric, labels ...string) bool {
	return !slices.ContainsFunc(r.Devices, func(d collector.Device) bool { _, has := value(d, m, labels...); return !has })
}

// class returns the whole devices of a class.
func class(r collector.Round, c collector.Class) []collector.Device { return simtest.Whole(r, c) }

// calls are the counts of a round, by call and code.
func calls(r collector.Round) map[string]uint64 {
	m := map[string]uint64{}
	for _, c := range r.Calls {
		m[c.Call+" "+c.Code] += c.Count
	}
	return m
}
