package fpga_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/collector/fpga"
)

const (
	f2App        = "/sys/bus/pci/devices/0000:34:00.0"
	f2Management = "/sys/bus/pci/devices/0000:34:00.1"
)

// TestAWSLoad: a load takes the application function off the bus and brings it
// back under other ids. The card is there all the time.
func TestAWSLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var emitted events
		n := newNode(t, load(t, "aws-f2"))
		s := open(t, n.fs(), fpga.Options{Emit: emitted.emit, PollInterval: 100 * time.Millisecond})
		sample(t, s)
		time.Sleep(time.Second)

		away := load(t, "aws-f2")
		away.Unplug(f2App)
		n.put(away)
		time.Sleep(2 * time.Second)
		d := one(t, sample(t, s))
		if d.ID != "0000:34:00.0" || d.Down != "" {
			t.Errorf("%s, down %q", d.ID, d.Down)
		}
		want(t, d, 0, collector.FPGABitstreamLoaded, "slot0")
		want(t, d, 0, collector.FPGAReconfigurations, "slot0", "ok")

		back := load(t, "aws-f2")
		back.Set(f2App+"/device", "0xf001\n")
		back.Set(f2App+"/subsystem_device", "0x1d51\n")
		n.put(back)
		time.Sleep(time.Second)
		r := sample(t, s)
		d = one(t, r)
		want(t, d, 1, collector.FPGABitstreamInfo, "slot0", "pci_ids", "1d0f:f001:1d0f:1d51")
		want(t, d, 1, collector.FPGAReconfigurations, "slot0", "ok")
		if got := r.Distributions[0]; got.Count() != 1 || got.Sum < 1.5 || got.Sum > 2.5 {
			t.Errorf("%d loads took %v s, want one of 2 s", got.Count(), got.Sum)
		}
		if list := emitted.all(); len(list) != 1 || list[0].Device != "0000:34:00.0" {
			t.Errorf("events: %+v", list)
		}
	})
}

// TestAWSF1Cleared: on F1 a slot without an image has the PCI device id 0x1042.
func TestAWSF1Cleared(t *testing.T) {
	tree := load(t, "aws-f2")
	tree.Set(f2Management+"/device", "0x1041\n")
	tree.Set(f2App+"/device", "0x1042\n")
	s := open(t, mounted(t, tree), quiet)
	d := one(t, sample(t, s))
	if d.Model != "AWS F1 FPGA" {
		t.Errorf("model %q", d.Model)
	}
	want(t, d, 0, collector.FPGABitstreamLoaded, "slot0")
	tree.Set(f2App+"/device", "0xf000\n")
	d = one(t, sample(t, s))
	want(t, d, 1, collector.FPGABitstreamLoaded, "slot0")
	want(t, d, 1, collector.FPGAReconfigurations, "slot0", "ok")
}

// TestAWSTakenByXRT: an application function that XRT's driver has is XRT's.
func TestAWSTakenByXRT(t *testing.T) {
	tree := load(t, "aws-f2")
	app, _ := tree.Real(f2App)
	tree.Link("/sys/bus/pci/drivers/xocl/0000:34:00.0", "../../../../devices/pci0000:33/0000:33:00.0/0000:34:00.0")
	tree.Link(app+"/driver", "../../../../bus/pci/drivers/xocl")
	tree.Set(app+"/rom.u.0/VBNV", "xilinx_aws-vu47p-f2_202410_1\n")
	tree.Set(app+"/ready", "0x1\n")
	d := one(t, sample(t, open(t, mounted(t, tree), quiet)))
	want(t, d, 1, collector.FPGAInfo, "xrt", "xocl", "1d0f:9048", "")
}

// TestOtherAmazonDevices: network and storage devices of a machine at AWS are
// no FPGAs.
func TestOtherAmazonDevices(t *testing.T) {
	tree := load(t, "aws-f2")
	tree.Set(f2Management+"/device", "0xec20\n")
	s := open(t, mounted(t, tree), quiet)
	if _, err := s.Sample(t.Context()); err == nil {
		t.Error("a network device is an FPGA")
	}
}

// TestV80: the driver's states of the card, and an unknown state.
func TestV80(t *testing.T) {
	for text, state := range map[string]string{"READY\n": "ready", "NO_AMC\n": "no_amc", "SHUTDOWN\n": "shutdown"} {
		tree := load(t, "v80-ami")
		tree.Set(v80+"/dev_state", text)
		want(t, one(t, sample(t, open(t, written(t, tree), quiet))), 1, collector.FPGACardState, state)
	}
	tree := load(t, "v80-ami")
	tree.Set(v80+"/dev_state", "DREAMING\n")
	d := one(t, sample(t, open(t, written(t, tree), quiet)))
	if wantNone(t, d, collector.FPGACardState); len(d.Rejects) == 0 {
		t.Error("the state is not rejected")
	}
	// Without its controller a card has no sensors.
	tree = load(t, "v80-ami")
	tree.Remove(v80 + "/hwmon")
	tree.Set(v80+"/amc_version", "")
	d = one(t, sample(t, open(t, written(t, tree), quiet)))
	wantNone(t, d, collector.TemperatureLimit, "DEVICE", "critical")
}
