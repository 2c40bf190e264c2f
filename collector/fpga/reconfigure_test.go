package fpga_test

import (
	"context"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/collector/fpga"
	"github.com/accel-exporter/accel-exporter/collector/sysfs"
)

// until samples until ok, for two minutes at most.
func until(t *testing.T, s *fpga.Source, what string, ok func(collector.Round, error) bool) {
	t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for time.Now().Before(deadline) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		r, err := s.Sample(ctx)
		cancel()
		if ok(r, err) {
			return
		}
	}
	t.Fatalf("not within two minutes: %s", what)
}

// has reports whether the only device of a Round has the value.
func has(r collector.Round, v float64, m *collector.Metric, labels ...string) bool {
	if len(r.Devices) != 1 {
		return false
	}
	got, there := value(r.Devices[0], m, labels...)
	return there && got == v
}

const dflManager = "DFL FME FPGA Manager"

// TestReconfigurationPlayed: a load of a DFL card as its driver shows it, while
// the card is read.
func TestReconfigurationPlayed(t *testing.T) {
	const next = "d8424dc4a4a3c413f89e433683f9040b"
	tree := load(t, "intel-n3000-dfl")
	var emitted events
	s := open(t, mounted(t, tree), fpga.Options{PollInterval: time.Millisecond, Emit: emitted.emit})
	sample(t, s)

	port := n3000 + "/dfl-port.0/afu_id"
	tree.SetErr(port, syscall.EBUSY)
	tree.Set("/sys/class/fpga_bridge/br0/state", "disabled\n")
	tree.Set("/sys/class/fpga_manager/fpga0/state", "write\n")
	// A read of them now would wait for the driver's lock.
	release := tree.Block(n3000 + "/dfl-fme.0/errors")
	releasePort := tree.Block(n3000 + "/dfl-port.0")
	until(t, s, "under way", func(r collector.Round, err error) bool {
		return err == nil && has(r, 1, collector.FPGAManagerState, dflManager, "write") &&
			has(r, 0, collector.FPGABitstreamLoaded, "port0") &&
			has(r, 0, collector.FPGABridgeEnabled, "port0") &&
			has(r, 35, collector.TemperatureCelsius, "Board Temperature") &&
			has(r, 1, collector.FPGABitstreamInfo, "port0", "afu", "9aeffe5f84570612c000c9660d824272")
	})
	if n := len(emitted.all()); n != 0 {
		t.Errorf("%d events before the end", n)
	}
	release()
	releasePort()
	tree.Set(port, next+"\n")
	tree.Set("/sys/class/fpga_bridge/br0/state", "enabled\n")
	tree.Set("/sys/class/fpga_manager/fpga0/state", "operating\n")
	until(t, s, "done", func(r collector.Round, err error) bool {
		return err == nil && has(r, 1, collector.FPGABitstreamInfo, "port0", "afu", next) &&
			has(r, 1, collector.FPGABitstreamLoaded, "port0") && has(r, 1, collector.FPGAReconfigurations, "port0", "ok")
	})
	d := one(t, sample(t, s))
	want(t, d, 1, collector.FPGAReconfigurations, "port0", "ok")
	want(t, d, 0, collector.FPGAReconfigurations, "port0", "failed")
	list := emitted.all()
	if len(list) != 1 || list[0].Device != d.ID || list[0].Code != 0 || list[0].Detail != "port0: ok, loaded "+next {
		t.Errorf("emitted %+v", list)
	}
}

// TestUnreadable: an errno that means a fault is returned with its file, and
// only that reading is absent.
func TestUnreadable(t *testing.T) {
	tree := load(t, "intel-n3000-dfl")
	tree.SetErr(n3000+"/dfl-fme.0/errors/pcie0_errors", syscall.EIO)
	s := open(t, mounted(t, tree), quiet)
	r, err := s.Sample(t.Context())
	if sysfs.Errno(err) != syscall.EIO {
		t.Errorf("error %v", err)
	}
	d := one(t, r)
	wantNone(t, d, collector.FPGAErrorsLatched, "pcie0")
	want(t, d, 0, collector.FPGAErrorsLatched, "fme")
	want(t, d, 64.709, collector.PowerWatts)

	// A card of which nothing can be read is down and keeps its id.
	for _, p := range tree.Paths() {
		if _, file := tree.Get(p); file && strings.Contains(p, "/fpga_region/") {
			tree.SetErr(p, syscall.EIO)
		}
	}
	until(t, s, "down", func(r collector.Round, err error) bool {
		d := one(t, r)
		return d.Down == collector.ReasonError && d.Model != "" && sysfs.Errno(err) == syscall.EIO
	})
}

// TestDeviceTreeElsewhere: in a container the device tree is read where it is
// mounted, and without it the image is not known.
func TestDeviceTreeElsewhere(t *testing.T) {
	tree := load(t, "zynqmp-fpga-manager")
	full := written(t, tree)
	bare := tree.Clone()
	bare.Remove("/sys/firmware")
	masked := written(t, bare)
	image := []string{"fpga-full", "firmware", "vadd_wrapper.bit.bin"}
	d := one(t, sample(t, open(t, masked, quiet)))
	wantNone(t, d, collector.FPGABitstreamInfo, image...)
	if d.Model != "Xilinx ZynqMP FPGA Manager" {
		t.Errorf("model %q", d.Model)
	}
	o := quiet
	o.Firmware = full.Path("firmware/devicetree/base")
	d = one(t, sample(t, open(t, masked, o)))
	want(t, d, 1, collector.FPGABitstreamInfo, image...)
	if d.Model != "ZynqMP ZCU102 Rev1.0" {
		t.Errorf("model %q", d.Model)
	}
}

// TestStatusWordIsAskedRarely: the word takes a firmware call through the
// configuration port, so it is read in the first round, after a load and never
// during one.
func TestStatusWordIsAskedRarely(t *testing.T) {
	tree := load(t, "zynqmp-fpga-manager")
	s := open(t, mounted(t, tree), quiet)
	state := func(text string) {
		tree.Set("/sys/class/fpga_manager/fpga0/state", text+"\n")
		d := one(t, sample(t, s))
		want(t, d, 1, collector.FPGAManagerState, "Xilinx ZynqMP FPGA Manager", text)
	}
	for _, step := range []struct {
		state string
		reads int
	}{{"operating", 1}, {"operating", 1}, {"write", 1}, {"write", 1}, {"operating", 2}, {"operating", 2}} {
		state(step.state)
		if n := tree.Reads(pcap + "/status"); n != step.reads {
			t.Errorf("%s: asked %d times, want %d", step.state, n, step.reads)
		}
	}
}
