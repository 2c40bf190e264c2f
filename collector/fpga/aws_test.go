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
		s := open(t, n.fs(), fpga.Options{Emit: emitted.emit, PollInterval: -1})
		sample(t, s)
		time.Sleep(time.Second)

		away := load(t, "aws-f2")
		away.Unplug(f2App)
		n.put(away)
		time.Sleep(time.Second)
		sample(t, s)
		time.Sleep(time.Second)
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
		d = one(t, sample(t, s))
		want(t, d, 1, collector.FPGABitstreamInfo, "slot0", "pci_ids", "1d0f:f001:1d0f:1d51")
		want(t, d, 1, collector.FPGAReconfigurations, "slot0", "ok")
		if list := emitted.all(); len(list) != 1 || list[0].Device != "0000:34:00.0" {
			t.Errorf("events: %+v", list)
		}
	})
}
