package pcie_test

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/collector/pcie"
	"github.com/accel-exporter/accel-exporter/collector/sysfs"
	"github.com/accel-exporter/accel-exporter/internal/sim/faketree"
	"github.com/accel-exporter/accel-exporter/internal/sim/simtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// load returns a tree of testdata/trees, or of fixtures/trees.
var load = simtest.LoadTree

// mount shows a tree as the kernel would, where this machine can, and returns
// the directory of its sys and proc.
func mount(tb testing.TB, tree *faketree.Tree) string {
	tb.Helper()
	return filepath.Dir(simtest.MountTree(tb, tree))
}

// write puts a tree into a directory.
func write(tb testing.TB, tree *faketree.Tree) string {
	tb.Helper()
	return filepath.Dir(simtest.WriteTree(tb, tree))
}

func open(tb testing.TB, dir string, o pcie.Options) *pcie.Source {
	tb.Helper()
	s := pcie.New(sysfs.New(filepath.Join(dir, "sys")), sysfs.New(filepath.Join(dir, "proc")), o)
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
	})
	return s
}

// sample is a round in which nothing hangs.
func sample(tb testing.TB, s *pcie.Source) collector.Round {
	tb.Helper()
	round, err := sampleFor(s, 2*time.Minute)
	if err != nil {
		tb.Fatal(err)
	}
	return round
}

func sampleFor(s *pcie.Source, limit time.Duration) (collector.Round, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return s.Sample(ctx)
}

// answers reports whether the first function of a card does.
func answers(d *collector.Device) bool {
	v, answered := value(d, collector.PCIeResponding, d.ID)
	return v == 1 || !answered
}

// lines writes a Round down as sorted text, without times.
func lines(round collector.Round) string {
	var out []string
	for _, d := range round.Devices {
		out = append(out, fmt.Sprintf("%s: class=%s vendor=%s pci=%s functions=%s driver=%s witness=%t down=%q", d.ID, d.Class, d.Vendor, d.PCI, d.Functions, d.Driver, d.Witness, d.Down))
		for _, r := range d.Readings {
			var labels []string
			for i, v := range r.Labels {
				labels = append(labels, fmt.Sprintf("%s=%q", r.Metric.Labels[i], v))
			}
			out = append(out, fmt.Sprintf("%s %s{%s} %g", d.ID, r.Metric.Name, strings.Join(labels, ","), r.Value))
		}
		for _, r := range d.Rejects {
			out = append(out, fmt.Sprintf("%s %s: rejected: %s", d.ID, r.Metric.Name, r.Reason))
		}
	}
	slices.Sort(out)
	return strings.Join(out, "\n") + "\n"
}

// device returns the device of an ID, nil where the Round has none.
func device(round collector.Round, id string) *collector.Device {
	i := slices.IndexFunc(round.Devices, func(d collector.Device) bool { return d.ID == id })
	if i < 0 {
		return nil
	}
	return &round.Devices[i]
}

// value returns the reading of m whose first labels are those given.
func value(d *collector.Device, m *collector.Metric, labels ...string) (float64, bool) {
	if d == nil {
		return 0, false
	}
	return simtest.Value(*d, m, labels...)
}

// want fails where the reading of m is not v; a negative v is none.
func want(t *testing.T, d *collector.Device, v float64, m *collector.Metric, labels ...string) {
	t.Helper()
	got, ok := value(d, m, labels...)
	if ok != (v >= 0) || ok && cmp.Compare(got, v) != 0 {
		t.Errorf("%s%q = %v, %v; want %v", m.Name, labels, got, ok, v)
	}
}
