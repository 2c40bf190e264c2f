package fpga_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/collector/fpga"
	"github.com/accel-exporter/accel-exporter/collector/sysfs"
	"github.com/accel-exporter/accel-exporter/internal/sim/faketree"
	"github.com/accel-exporter/accel-exporter/internal/sim/golden"
	"github.com/accel-exporter/accel-exporter/internal/sim/simtest"
)

// load returns a tree of fixtures/trees.
var load = simtest.LoadTree

// trees are one for each kind of card.
var trees = []string{
	"intel-n3000-dfl", "intel-d5005-dfl", "intel-n6001-ofs", "intel-pac-a10-dfl", "pac-a10-intel-fpga", "zynqmp-fpga-manager", "xilinx-u250-xrt", "aws-f2", "vck5000-xrt", "v80-ami",
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

// sample is a Round in which every device was read after the call.
func sample(tb testing.TB, s *fpga.Source) collector.Round {
	tb.Helper()
	r, err := simtest.Fresh(tb, s)
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

// value returns the value of the first series whose labels begin with those given, and
// whether d has one.
var value = simtest.Value

// want fails unless d has the series with the value.
func want(tb testing.TB, d collector.Device, v float64, m *collector.Metric, labels ...string) {
	tb.Helper()
	if got, ok := value(d, m, labels...); !ok || got != v {
		tb.Errorf("%s is %v (there: %v), want %v", simtest.SeriesName(m, labels), got, ok, v)
	}
}

// wantNone fails if d has a series whose labels begin with those given.
func wantNone(tb testing.TB, d collector.Device, m *collector.Metric, labels ...string) {
	tb.Helper()
	if got, ok := value(d, m, labels...); ok {
		tb.Errorf("%s is %v, want none", simtest.SeriesName(m, labels), got)
	}
}

// TestGolden: the devices of each tree, line by line.
func TestGolden(t *testing.T) {
	for _, name := range trees {
		t.Run(name, func(t *testing.T) {
			golden.Compare(t, "testdata/"+name+".golden", simtest.Page(sample(t, open(t, mounted(t, load(t, name)), quiet))))
		})
	}
}

// TestCases plays the cases of each family.
func TestCases(t *testing.T) {
	simtest.Cases(t, func(tb testing.TB, sys string, slow bool, emit func(collector.Event)) collector.Source {
		o := fpga.Options{PollInterval: -1, Emit: emit}
		if slow {
			o.SlowInterval = time.Nanosecond
		}
		return open(tb, sysfs.New(sys), o)
	})
}

// TestLimitsHaveReadings: a limit has the sensor of a reading, so that they can be compared.
func TestLimitsHaveReadings(t *testing.T) {
	limits := map[*collector.Metric]*collector.Metric{
		collector.TemperatureLimit: collector.TemperatureCelsius, collector.FPGAVoltageLimit: collector.FPGAVoltage, collector.FPGACurrentLimit: collector.FPGACurrent,
	}
	for _, name := range trees {
		if name == "v80-ami" {
			continue // its sensors are not read
		}
		d := one(t, sample(t, open(t, written(t, load(t, name)), quiet)))
		for _, r := range d.Readings {
			m := limits[r.Metric]
			if m == nil || r.Labels[0] == "Columbiaville Die Temperature" { // -256 in the tree
				continue
			}
			if _, known := value(d, m, r.Labels[0]); !known {
				t.Errorf("%s: no %s of %s", name, m.Name, r.Labels[0])
			}
		}
	}
}

// TestZeroIsKept: a sensor that has had a value and reads 0 now is 0, or rejected. A powered
// card has no part at the freezing point and draws power: these zeros are no measurements.
func TestZeroIsKept(t *testing.T) {
	sensor := regexp.MustCompile(`(^|/)((in|curr|fan|temp|power)[0-9]+_input|xmc_[^/]*(vol|curr?|rpm|_i|5v5|vcc[^/]*|1v[0-9][^/]*|0v85)|vcc_[a-z]+|clock_freqs)$`)
	for _, name := range trees {
		tree := load(t, name)
		s := open(t, mounted(t, tree), fpga.Options{PollInterval: -1, SlowInterval: time.Nanosecond})
		before := one(t, sample(t, s))
		for _, file := range tree.Opened() {
			if text, _ := tree.Get(file); sensor.MatchString(file) && tree.Err(file) == 0 {
				tree.Set(file, regexp.MustCompile(`[0-9]+`).ReplaceAllString(text, "0"))
			}
		}
		after := one(t, sample(t, s))
		for _, r := range before.Readings {
			unmeasured := r.Metric == collector.TemperatureCelsius || r.Metric == collector.PowerWatts || r.Metric == collector.FPGARailPower || strings.Contains(r.Metric.Name, "_limit_")
			if _, there := value(after, r.Metric, r.Labels...); !there && !unmeasured {
				t.Errorf("%s: %s is gone", name, simtest.SeriesName(r.Metric, r.Labels))
			}
		}
	}
}
