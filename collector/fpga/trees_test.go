package fpga_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/collector/fpga"
	"github.com/accel-exporter/accel-exporter/collector/sysfs"
	"github.com/accel-exporter/accel-exporter/internal/sim/faketree"
	"github.com/accel-exporter/accel-exporter/internal/sim/golden"
	"github.com/accel-exporter/accel-exporter/internal/sim/simtest"
)

// load returns a tree of fixtures/trees, or of testdata/trees, where the cards are
// that have no fixture.
var load = simtest.LoadTree

// trees are one for each kind of card.
var trees = []string{
	"intel-n3000-dfl", "intel-n6001-ofs", "intel-pac-a10-dfl", "pac-a10-intel-fpga", "zynqmp-fpga-manager", "xilinx-u250-xrt", "aws-f2", "vck5000-xrt", "v80-ami",
}

// mounted shows a tree through FUSE, where reads fail, block and are counted
// as they are in a kernel. The test is skipped where that cannot be.
func mounted(tb testing.TB, tree *faketree.Tree) sysfs.FS {
	tb.Helper()
	return sysfs.New(simtest.MountTree(tb, tree))
}

// written shows a tree as files in a directory.
func written(tb testing.TB, tree *faketree.Tree) sysfs.FS {
	tb.Helper()
	return sysfs.New(simtest.WriteTree(tb, tree))
}

// quiet are options with no polling between two rounds and every due file read
// in the round.
var quiet = fpga.Options{PollInterval: -1}

// open returns a Source that is closed at the end of the test.
func open(tb testing.TB, fs sysfs.FS, o fpga.Options) *fpga.Source {
	tb.Helper()
	s := fpga.New(fs, o)
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Errorf("close: %v", err)
		}
	})
	return s
}

// sample returns a Round in which every device was read after the call: a
// Source may return a slow card's previous result.
func sample(tb testing.TB, s *fpga.Source) collector.Round {
	tb.Helper()
	r, err := attempt(tb, s)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

// one returns the only device of a round.
func one(tb testing.TB, r collector.Round) collector.Device {
	tb.Helper()
	if len(r.Devices) != 1 {
		tb.Fatalf("%d devices, want 1", len(r.Devices))
	}
	return r.Devices[0]
}

// series returns the readings of d as lines of the exposition, sorted.
func series(d *collector.Device) []string {
	var out []string
	for _, r := range d.Readings {
		out = append(out, fmt.Sprintf("%s %v", seriesName(r.Metric, r.Labels), r.Value))
	}
	slices.Sort(out)
	return out
}

func seriesName(m *collector.Metric, labels []string) string {
	var b strings.Builder
	b.WriteString(m.Name)
	for i, l := range m.Labels {
		fmt.Fprintf(&b, "%c%s=%q", ",{"[min(1, 1-min(i, 1))], l, labels[i])
	}
	if len(m.Labels) > 0 {
		b.WriteString("}")
	}
	return b.String()
}

// value returns the value of the first series whose labels begin with those given, and
// whether d has one.
var value = simtest.Value

// want fails unless d has the series with the value.
func want(tb testing.TB, d collector.Device, v float64, m *collector.Metric, labels ...string) {
	tb.Helper()
	if got, ok := value(d, m, labels...); !ok || got != v {
		tb.Errorf("%s is %v (there: %v), want %v", seriesName(m, labels), got, ok, v)
	}
}

// wantNone fails if d has a series whose labels begin with those given.
func wantNone(tb testing.TB, d collector.Device, m *collector.Metric, labels ...string) {
	tb.Helper()
	if got, ok := value(d, m, labels...); ok {
		tb.Errorf("%s is %v, want none", seriesName(m, labels), got)
	}
}

// page is a Round as text.
func page(r collector.Round) string {
	var b strings.Builder
	for i := range r.Devices {
		d := &r.Devices[i]
		fmt.Fprintf(&b, "device %s vendor=%s model=%q pci=%s functions=%v driver=%q kube=%v down=%q\n", d.ID, d.Vendor, d.Model, d.PCI, d.Functions, d.Driver, d.KubeIDs, d.Down)
		for _, s := range series(d) {
			fmt.Fprintln(&b, s)
		}
		for _, j := range d.Rejects {
			fmt.Fprintf(&b, "rejected %s: %s\n", j.Metric.Name, j.Reason)
		}
	}
	for _, d := range r.Distributions {
		fmt.Fprintf(&b, "%s device=%s counts=%v sum=%v\n", seriesName(d.Metric, d.Labels), d.Device, d.Counts, d.Sum)
	}
	return b.String()
}

// TestGolden: the devices of each tree, line by line.
func TestGolden(t *testing.T) {
	for _, name := range trees {
		t.Run(name, func(t *testing.T) {
			golden.Compare(t, "testdata/"+name+".golden", page(sample(t, open(t, mounted(t, load(t, name)), quiet))))
		})
	}
}
