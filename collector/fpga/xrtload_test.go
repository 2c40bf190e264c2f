package fpga_test

import (
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/collector/fpga"
	"github.com/accel-exporter/accel-exporter/collector/sysfs"
	"github.com/accel-exporter/accel-exporter/internal/sim/faketree"
)

// events collects the events of a Source.
type events struct {
	sync.Mutex
	list []collector.Event
}

func (e *events) emit(ev collector.Event) {
	e.Lock()
	defer e.Unlock()
	e.list = append(e.list, ev)
}

func (e *events) all() []collector.Event {
	e.Lock()
	defer e.Unlock()
	return slices.Clone(e.list)
}

// node is a tree in a directory that can be replaced, within virtual time,
// where a mounted one could not be read.
type node struct {
	tb   testing.TB
	dir  string
	tree *faketree.Tree
}

func newNode(tb testing.TB, tree *faketree.Tree) *node {
	n := &node{tb, tb.TempDir(), tree}
	n.put(tree)
	return n
}

// put replaces the tree.
func (n *node) put(tree *faketree.Tree) {
	n.tb.Helper()
	n.tree = tree
	if err := os.RemoveAll(n.dir + "/sys"); err != nil {
		n.tb.Fatal(err)
	}
	if err := tree.Write(n.dir); err != nil {
		n.tb.Fatal(err)
	}
}

func (n *node) fs() sysfs.FS { return sysfs.New(n.dir + "/sys") }

// TestImageLoad follows a load from the previous image to the next one.
func TestImageLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var emitted events
		n := newNode(t, load(t, "xilinx-u250-xrt"))
		s := open(t, n.fs(), fpga.Options{Emit: emitted.emit, PollInterval: -1, SlowInterval: time.Second})
		d := one(t, sample(t, s))
		want(t, d, 1, collector.FPGABitstreamLoaded, "slot0")
		time.Sleep(time.Second)

		// The units leave, and xclbinuuid blocks or is empty: the previous
		// image is still reported as not loaded, and sensors are read.
		n.put(load(t, "variants/u250-xclbin-loading"))
		time.Sleep(time.Second)
		d = one(t, sample(t, s))
		want(t, d, 0, collector.FPGABitstreamLoaded, "slot0")
		want(t, d, 1, collector.FPGABitstreamInfo, image...)
		want(t, d, 0, collector.FPGAMemoryCalibrated, "all")
		want(t, d, 37, collector.TemperatureCelsius, "fpga")
		want(t, d, 0, collector.FPGAReconfigurations, "slot0", "ok")
		wantNone(t, d, collector.FPGAExecutions, "vadd:vadd_1")
		time.Sleep(2 * time.Second)

		n.put(load(t, "variants/u250-xclbin-changed"))
		time.Sleep(time.Second)
		r := sample(t, s)
		d = one(t, r)
		const next = "b71a31ab-2f4f-4f5a-9a8e-0d7a3a7b0c11"
		want(t, d, 1, collector.FPGABitstreamLoaded, "slot0")
		want(t, d, 1, collector.FPGABitstreamInfo, "slot0", "xclbin", next)
		wantNone(t, d, collector.FPGABitstreamInfo, image...)
		want(t, d, 1, collector.FPGAReconfigurations, "slot0", "ok")
		want(t, d, 0, collector.FPGAExecutions, "mmult:mmult_1")
		wantNone(t, d, collector.FPGAExecutions, "vadd:vadd_1")
		list := emitted.all()
		if len(list) != 1 || list[0].Kind != collector.EventReconfiguration || list[0].Code != 0 ||
			list[0].Device != "0000:5e:00.1" || !strings.Contains(list[0].Detail, next) {
			t.Errorf("events: %+v", list)
		}
	})
}

// TestImageUnloaded: an image that does not return is no longer reported, and a
// much later load counts once.
func TestImageUnloaded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t, load(t, "xilinx-u250-xrt"))
		s := open(t, n.fs(), quiet)
		sample(t, s)
		time.Sleep(time.Second)
		n.put(load(t, "variants/u250-xclbin-loading"))
		time.Sleep(time.Second)
		want(t, one(t, sample(t, s)), 1, collector.FPGABitstreamInfo, image...)
		time.Sleep(30 * time.Second)
		d := one(t, sample(t, s))
		wantNone(t, d, collector.FPGABitstreamInfo, image...)
		want(t, d, 0, collector.FPGABitstreamLoaded, "slot0")

		for range 60 {
			time.Sleep(10 * time.Second)
			sample(t, s)
		}
		n.put(load(t, "variants/u250-xclbin-changed"))
		time.Sleep(time.Second)
		want(t, one(t, sample(t, s)), 1, collector.FPGAReconfigurations, "slot0", "ok")
	})
}

// TestLoadBlocksNoSensor: while the driver's lock is taken nothing that waits
// for it is read, and the sensors are current.
func TestLoadBlocksNoSensor(t *testing.T) {
	tree := load(t, "xilinx-u250-xrt")
	fs := mounted(t, tree)
	s := open(t, fs, fpga.Options{PollInterval: -1, SlowInterval: time.Nanosecond})
	sample(t, s)
	tree.Unplug(u250 + "/cu.u.44040192")
	tree.Unplug(u250 + "/cu.u.44040193")
	want(t, one(t, sample(t, s)), 0, collector.FPGABitstreamLoaded, "slot0")
	for _, f := range []string{"xclbinuuid", "kds_custat_raw", "memstat", "icap.u.22020096"} {
		t.Cleanup(tree.Block(u250 + "/" + f))
	}
	t.Cleanup(tree.Block(mgmt + "/icap.m.22020096"))
	tree.Set(mgmt+"/xmc.m.18874368/xmc_fpga_temp", "61\n")
	d := one(t, sample(t, s))
	want(t, d, 61, collector.TemperatureCelsius, "fpga")
	want(t, d, 1, collector.FPGABitstreamInfo, image...)
	if d.Down != "" {
		t.Errorf("down: %s", d.Down)
	}
}

// TestIdentityOutlivesController: a board's controller that does not answer
// for a while takes neither the name nor the serial number with it.
func TestIdentityOutlivesController(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t, load(t, "xilinx-u250-xrt"))
		s := open(t, n.fs(), quiet)
		before := one(t, sample(t, s))
		mute := load(t, "xilinx-u250-xrt")
		for _, f := range []string{u250 + "/xmc.u.18874368", mgmt + "/xmc.m.18874368"} {
			mute.Set(f+"/serial_num", "\n")
			mute.Set(f+"/bd_name", "\n")
		}
		n.put(mute)
		time.Sleep(5 * time.Minute)
		d := one(t, sample(t, s))
		if d.Model != before.Model {
			t.Errorf("model %q was %q", d.Model, before.Model)
		}
		if got, want := names(d, collector.DeviceInfo, 7), names(before, collector.DeviceInfo, 7); got[0] != want[0] {
			t.Errorf("serial %q was %q", got, want)
		}
	})
}

// TestStalledController: in a virtual machine the readings of a controller whose heartbeats
// do not change are out of date.
func TestStalledController(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t, load(t, "variants/u250-user-only"))
		s := open(t, n.fs(), quiet)
		for _, step := range []struct {
			count string
			ready float64
		}{{"7", 1}, {"8", 1}, {"8", 0}, {"9", 1}} {
			n.tree.Set(u250+"/xmc.u.18874368/xmc_heartbeat_count", step.count+"\n")
			n.put(n.tree)
			time.Sleep(11 * time.Second)
			d := one(t, sample(t, s))
			want(t, d, step.ready, collector.FPGAControllerReady, "cmc")
			if _, known := value(d, collector.TemperatureCelsius, "fpga"); known != (step.ready == 1) {
				t.Errorf("count %s: the temperature is known: %t", step.count, known)
			}
		}
	})
}

// TestStoppedClocks: clocks that the driver has stopped are 0; a clock that the image
// does not use is absent.
func TestStoppedClocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t, load(t, "xilinx-u250-xrt"))
		s := open(t, n.fs(), quiet)
		want(t, one(t, sample(t, s)), 500e6, collector.ClockHertz, "kernel")
		hot := load(t, "xilinx-u250-xrt")
		hot.Set(mgmt+"/icap.m.22020096/clock_freqs", "0\n0\n0\n0\n")
		n.put(hot)
		time.Sleep(2 * time.Minute)
		d := one(t, sample(t, s))
		want(t, d, 0, collector.ClockHertz, "kernel")
		wantNone(t, d, collector.ClockHertz, "system")
	})
}
