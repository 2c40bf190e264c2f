//go:build linux && cgo

package nvidia

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/sim"
	"github.com/accel-exporter/accel-exporter/internal/sim/simtest"
)

// A process can load one NVML only.
func TestMain(m *testing.M) {
	closeBound = time.Minute // nothing hangs at the end of a test, but the machine may be busy
	simtest.Main(m)
}

// libraryEnv names the library to a child.
const libraryEnv = "NVIDIA_TEST_LIBRARY"

// inChild runs the test in a process with the scenario and initial faults, and
// returns its output.
func inChild(t testing.TB, scenario string, faults [][]string, body func(s *sampling)) string {
	t.Helper()
	return simtest.InChild(t, func() string {
		state := filepath.Join(t.TempDir(), "state")
		missing := simtest.Install(t, state, scenario, sim.Options{}, faults...).Missing
		library := simtest.WithoutSymbols(t, simtest.Libraries(t, "nvml"), soname, missing)
		return simtest.Run(t, state, libraryEnv+"="+filepath.Join(library, soname))
	}, func() {
		s := &sampling{}
		s.Sampling = simtest.NewSampling(t, func() collector.Source {
			if s.source == nil {
				s.open(Options{})
			}
			return s.source
		})
		body(s)
		s.Close()
	})
}

// sampling is a Source under test in a child process.
type sampling struct {
	simtest.Sampling
	source *Source
}

func (s *sampling) open(o Options) {
	root := sim.Root(os.Getenv(simtest.StateVar))
	o.Library, o.Sysfs, o.Procfs = os.Getenv(libraryEnv), root+"/sys", root+"/proc"
	s.source = New(o, s.Emit)
}

// next waits for an event of the kind and skips others.
func (s *sampling) next(kind collector.EventKind) collector.Event {
	s.Helper()
	timeout := time.After(simtest.Patience)
	for {
		select {
		case e := <-s.Events:
			if e.Kind == kind {
				return e
			}
		case <-timeout:
			s.Fatalf("no event %s came", kind)
		}
	}
}

// value returns the reading of m with the labels, if it exists.
func value(d collector.Device, m *collector.Metric, labels ...string) (float64, error) {
	switch list := simtest.Values(d, m, labels...); len(list) {
	case 0:
		return 0, errAbsentReading
	case 1:
		return list[0], nil
	default:
		return 0, fmt.Errorf("%s%v: %d readings", m.Name, labels, len(list))
	}
}

var errAbsentReading = errors.New("absent")

// gpus returns the whole GPUs, in the order of the enumeration.
func gpus(r collector.Round) []collector.Device { return simtest.Whole(r, collector.GPU) }
