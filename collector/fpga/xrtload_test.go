package fpga_test

import (
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
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
		s := open(t, n.fs(), fpga.Options{Emit: emitted.emit, PollInterval: 100 * time.Millisecond, SlowInterval: time.Second})
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
		// The next round at the latest lists the queues' directories again.
		d = one(t, sample(t, s))
		want(t, d, 0, collector.FPGAQueueLength, "mmult:mmult_1", "pending")
		if got := r.Distributions[0]; got.Count() != 1 || got.Sum < 2.5 || got.Sum > 3.5 {
			t.Errorf("%d loads took %v s, want one of 3 s", got.Count(), got.Sum)
		}
		list := emitted.all()
		if len(list) != 1 || list[0].Kind != collector.EventReconfiguration || list[0].Code != 0 ||
			list[0].Device != "0000:5e:00.1" || !strings.Contains(list[0].Detail, next) {
			t.Errorf("events: %+v", list)
		}
	})
}

// TestImageUnloaded: an image that does not return is no longer reported, and a
// much later load is not timed from the unload.
func TestImageUnloaded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t, load(t, "xilinx-u250-xrt"))
		s := open(t, n.fs(), fpga.Options{PollInterval: 100 * time.Millisecond})
		sample(t, s)
		time.Sleep(time.Second)
		n.put(load(t, "variants/u250-xclbin-loading"))
		time.Sleep(time.Second)
		want(t, one(t, sample(t, s)), 1, collector.FPGABitstreamInfo, image...)
		time.Sleep(30 * time.Second)
		d := one(t, sample(t, s))
		wantNone(t, d, collector.FPGABitstreamInfo, image...)
		want(t, d, 0, collector.FPGABitstreamLoaded, "slot0")

		time.Sleep(10 * time.Minute)
		sample(t, s)
		n.put(load(t, "variants/u250-xclbin-changed"))
		time.Sleep(time.Second)
		r := sample(t, s)
		want(t, one(t, r), 1, collector.FPGAReconfigurations, "slot0", "ok")
		if got := r.Distributions[0]; got.Sum > 60 {
			t.Errorf("a load of %v s", got.Sum)
		}
	})
}

// TestFirstImage: a card that was empty when the exporter started counts a
// reconfiguration when an image appears; a card with an image does not.
func TestFirstImage(t *testing.T) {
	tree := load(t, "xilinx-u250-xrt")
	tree.Set(u250+"/xclbinuuid", "")
	var emitted events
	s := open(t, mounted(t, tree), fpga.Options{Emit: emitted.emit, PollInterval: -1})
	want(t, one(t, sample(t, s)), 0, collector.FPGABitstreamLoaded, "slot0")
	tree.Set(u250+"/xclbinuuid", image[2]+"\n")
	d := one(t, sample(t, s))
	want(t, d, 1, collector.FPGAReconfigurations, "slot0", "ok")
	if n := len(emitted.all()); n != 1 {
		t.Errorf("%d events, want 1", n)
	}
	want(t, one(t, sample(t, s)), 1, collector.FPGAReconfigurations, "slot0", "ok")
}

// TestLoadBlocksNoSensor: while the driver's lock is taken nothing that waits
// for it is read, and the sensors are current.
func TestLoadBlocksNoSensor(t *testing.T) {
	tree := load(t, "xilinx-u250-xrt")
	fs := mounted(t, tree)
	s := open(t, fs, fpga.Options{PollInterval: time.Millisecond, SlowInterval: time.Nanosecond})
	sample(t, s)
	tree.Unplug(u250 + "/cu.u.44040192")
	tree.Unplug(u250 + "/cu.u.44040193")
	// The next poll detects that.
	for d := one(t, sample(t, s)); ; d = one(t, sample(t, s)) {
		if v, _ := value(d, collector.FPGABitstreamLoaded, "slot0"); v == 0 {
			break
		}
	}
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

// TestUserFunctionOnly: in a virtual machine the sensors come through the user
// function, and values of the management function are absent, not zero.
func TestUserFunctionOnly(t *testing.T) {
	d := one(t, sample(t, open(t, mounted(t, load(t, "variants/u250-user-only")), quiet)))
	if d.ID != "0000:5e:00.1" || len(d.Functions) != 0 || d.Model != "ALVEO U250" {
		t.Errorf("%s, functions %v, model %s", d.ID, d.Functions, d.Model)
	}
	want(t, d, 37, collector.TemperatureCelsius, "fpga")
	want(t, d, 17.42381, collector.PowerWatts)
	want(t, d, 300e6, collector.ClockHertz, "data")
	want(t, d, 1, collector.FPGACardState, "ready")
	wantNone(t, d, collector.FPGAFirewallTripped)
	wantNone(t, d, collector.FPGAMemoryECCErrors)
	wantNone(t, d, collector.FPGAControllerStalled)
}

// TestManagementFunctionOnly: the user function is a virtual machine's. The
// card keeps its name.
func TestManagementFunctionOnly(t *testing.T) {
	tree := load(t, "xilinx-u250-xrt")
	tree.Remove("/sys/bus/pci/drivers/xocl/0000:5e:00.1")
	tree.Link("/sys/bus/pci/drivers/vfio-pci/0000:5e:00.1", "../../../../devices/pci0000:5d/0000:5d:00.0/0000:5e:00.1")
	real, _ := tree.Real(u250)
	tree.Link(real+"/driver", "../../../../bus/pci/drivers/vfio-pci")
	d := one(t, sample(t, open(t, mounted(t, tree), quiet)))
	if d.ID != "0000:5e:00.1" || d.Driver != "vfio-pci" {
		t.Errorf("id %s, driver %s", d.ID, d.Driver)
	}
	want(t, d, 37, collector.TemperatureCelsius, "fpga")
	want(t, d, 0, collector.FPGAFirewallTripped, "axi0")
	want(t, d, 7, collector.FPGAMemoryECCErrors, "bank2", "corrected")
	wantNone(t, d, collector.FPGABitstreamLoaded, "slot0")
	wantNone(t, d, collector.PCIeTransmit)
}

// TestBoardSensors: a sensor that is not fitted reads 0 and is absent; a sensor
// that has had a value may read 0.
func TestBoardSensors(t *testing.T) {
	const xmc = mgmt + "/xmc.m.18874368/"
	tree := load(t, "xilinx-u250-xrt")
	s := open(t, mounted(t, tree), quiet)
	d := one(t, sample(t, s))
	wantNone(t, d, collector.TemperatureCelsius, "hbm")
	wantNone(t, d, collector.FPGACurrent, "12v_aux")
	want(t, d, 12.058, collector.FPGAVoltage, "12v_pex")
	want(t, d, 225, collector.PowerLimit, "max")

	tree.Set(xmc+"xmc_12v_pex_vol", "0\n")
	tree.Set(xmc+"xmc_fan_rpm", "0\n")
	d = one(t, sample(t, s))
	want(t, d, 0, collector.FPGAVoltage, "12v_pex")
	want(t, d, 0, collector.FanSpeed, "fan")

	// A controller that does not answer reads 0 everywhere.
	for _, p := range tree.Paths() {
		if strings.Contains(p, "/xmc.m.") && strings.Contains(p, "/xmc_") {
			tree.Set(p, "0\n")
		}
	}
	d = one(t, sample(t, s))
	wantNone(t, d, collector.FPGAVoltage, "12v_pex")
	wantNone(t, d, collector.FanSpeed, "fan")
	wantNone(t, d, collector.PowerWatts)

	// A controller that has stopped shows old values.
	tree = load(t, "xilinx-u250-xrt")
	tree.Set(xmc+"xmc_heartbeat_stall", "1\n")
	d = one(t, sample(t, open(t, mounted(t, tree), quiet)))
	want(t, d, 1, collector.FPGAControllerStalled)
	wantNone(t, d, collector.TemperatureCelsius, "fpga")
}

// TestPowerLevel: the board's controller returns a level, not watts.
func TestPowerLevel(t *testing.T) {
	for text, watts := range map[string]float64{"0\n": 75, "1\n": 150, "2\n": 225, "225\n": 225} {
		tree := load(t, "xilinx-u250-xrt")
		tree.Set(mgmt+"/xmc.m.18874368/max_power", text)
		want(t, one(t, sample(t, open(t, written(t, tree), quiet))), watts, collector.PowerLimit, "max")
	}
	tree := load(t, "xilinx-u250-xrt")
	tree.Set(mgmt+"/xmc.m.18874368/max_power", "7\n")
	wantNone(t, one(t, sample(t, open(t, written(t, tree), quiet))), collector.PowerLimit, "max")
}

// TestNeverCalibrated: a card without such memory answers 0 for ever.
func TestNeverCalibrated(t *testing.T) {
	tree := load(t, "xilinx-u250-xrt")
	tree.Set(mgmt+"/mig_calibration", "0\n")
	s := open(t, mounted(t, tree), fpga.Options{PollInterval: -1, SlowInterval: time.Nanosecond})
	wantNone(t, one(t, sample(t, s)), collector.FPGAMemoryCalibrated, "all")
	tree.Set(mgmt+"/mig_calibration", "1\n")
	want(t, one(t, sample(t, s)), 1, collector.FPGAMemoryCalibrated, "all")
	tree.Set(mgmt+"/mig_calibration", "0\n")
	want(t, one(t, sample(t, s)), 0, collector.FPGAMemoryCalibrated, "all")
}

// TestResetting: the state of a card that is being reset.
func TestResetting(t *testing.T) {
	d := one(t, sample(t, open(t, written(t, load(t, "variants/u250-resetting")), quiet)))
	want(t, d, 1, collector.FPGACardState, "offline")
	want(t, d, 0, collector.FPGACardState, "ready")
}

// TestReadErrorIsTold: an errno that is no answer is an error of the round,
// and costs nothing else.
func TestReadErrorIsTold(t *testing.T) {
	tree := load(t, "xilinx-u250-xrt")
	tree.SetErr(mgmt+"/xmc.m.18874368/xmc_fpga_temp", syscall.EIO)
	s := open(t, mounted(t, tree), quiet)
	r, err := s.Sample(t.Context())
	if err == nil || !strings.Contains(err.Error(), "xmc_fpga_temp") {
		t.Errorf("error: %v", err)
	}
	d := one(t, r)
	want(t, d, 40, collector.TemperatureCelsius, "vccint")
	wantNone(t, d, collector.TemperatureCelsius, "fpga")
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

// TestECC: HBM counts uncorrected errors, DDR only latches them, and a bank
// without ECC counts nothing.
func TestECC(t *testing.T) {
	tree := load(t, "xilinx-u250-xrt")
	hbm := mgmt + "/mig.hbm.m.17825796"
	for file, text := range map[string]string{"name": "HBM[0]\n", "ecc_enabled": "1\n", "ecc_status": "3\n", "ecc_ce_cnt": "5\n", "ecc_ue_cnt": "2\n"} {
		tree.Set(hbm+"/"+file, text)
	}
	tree.Set(mgmt+"/mig.m.17825792/ecc_status", "1\n")
	tree.Set(mgmt+"/mig.m.17825793/ecc_enabled", "0\n")
	d := one(t, sample(t, open(t, written(t, tree), quiet)))
	want(t, d, 5, collector.FPGAMemoryECCErrors, "HBM[0]", "corrected")
	want(t, d, 2, collector.FPGAMemoryECCErrors, "HBM[0]", "uncorrected")
	want(t, d, 1, collector.FPGAMemoryECCLatched, "HBM[0]", "corrected")
	want(t, d, 1, collector.FPGAMemoryECCLatched, "bank0", "uncorrected")
	wantNone(t, d, collector.FPGAMemoryECCErrors, "bank0", "uncorrected")
	wantNone(t, d, collector.FPGAMemoryECCErrors, "bank1", "corrected")
	want(t, d, 7, collector.FPGAMemoryECCErrors, "bank2", "corrected")
}

// TestNoBoardController: without one, the FPGA's sensors are used.
func TestNoBoardController(t *testing.T) {
	tree := load(t, "xilinx-u250-xrt")
	tree.Unplug(mgmt + "/xmc.m.18874368")
	tree.Unplug(u250 + "/xmc.u.18874368")
	d := one(t, sample(t, open(t, written(t, tree), quiet)))
	want(t, d, 37, collector.TemperatureCelsius, "fpga")
	want(t, d, 0.851, collector.FPGAVoltage, "vccint")
	wantNone(t, d, collector.PowerWatts)
	if d.Model != "ALVEO U250" {
		t.Errorf("model %q", d.Model)
	}
}

// TestPassiveCard: a card without a fan has no fan that is stopped.
func TestPassiveCard(t *testing.T) {
	tree := load(t, "xilinx-u250-xrt")
	tree.Set(mgmt+"/xmc.m.18874368/fan_presence", "P\n")
	tree.Set(mgmt+"/xmc.m.18874368/xmc_fan_rpm", "0\n")
	wantNone(t, one(t, sample(t, open(t, written(t, tree), quiet))), collector.FanSpeed, "fan")
	tree.Set(mgmt+"/xmc.m.18874368/fan_presence", "A\n")
	want(t, one(t, sample(t, open(t, written(t, tree), quiet))), 0, collector.FanSpeed, "fan")
}
