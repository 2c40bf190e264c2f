package fpga_test

import (
	"math"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/collector/fpga"
	"github.com/accel-exporter/accel-exporter/internal/sim/faketree"
)

// The traps of the drivers' files, by their numbers in the list of traps that
// all families share.

const (
	n3000 = "/sys/bus/pci/devices/0000:1b:00.0/fpga_region/region0"
	n6001 = "/sys/bus/pci/devices/0000:b1:00.0/fpga_region/region0"
	pac   = "/sys/bus/pci/devices/0000:3b:00.0/fpga_region/region0"
	pcap  = "/sys/devices/platform/firmware:zynqmp-firmware/firmware:zynqmp-firmware:pcap"
)

// TestTrap01UnknownStateIsNoFault: a manager that has loaded nothing yet is
// neither broken nor busy.
func TestTrap01UnknownStateIsNoFault(t *testing.T) {
	d := one(t, sample(t, open(t, written(t, load(t, "intel-n3000-dfl")), quiet)))
	want(t, d, 1, collector.FPGAManagerState, "DFL FME FPGA Manager", "unknown")
	want(t, d, 1, collector.FPGABitstreamLoaded, "port0")
	if d.Down != "" {
		t.Errorf("down: %s", d.Down)
	}
	wantNone(t, d, collector.FPGAManagerError)
}

// TestTrap02NoCompatID: ENOENT of a region's compat_id is no error.
func TestTrap02NoCompatID(t *testing.T) {
	for _, name := range []string{"intel-n3000-dfl", "zynqmp-fpga-manager"} {
		sample(t, open(t, mounted(t, load(t, name)), quiet)) // fails on any error
	}
	tree := load(t, "intel-n3000-dfl")
	tree.SetErr("/sys/class/fpga_region/region1/compat_id", syscall.ENOENT)
	d := one(t, sample(t, open(t, mounted(t, tree), quiet)))
	for _, r := range d.Readings {
		if r.Metric == collector.FPGABitstreamInfo && r.Labels[1] == "pr_interface" {
			t.Errorf("an interface: %v", r.Labels)
		}
	}
}

// TestTrap03BusyPortKeepsIdentity: while a port is disabled its function is not
// loaded and keeps its identity.
func TestTrap03BusyPortKeepsIdentity(t *testing.T) {
	tree := load(t, "intel-n3000-dfl")
	s := open(t, mounted(t, tree), quiet)
	afu := []string{"port0", "afu", "9aeffe5f84570612c000c9660d824272"}
	want(t, one(t, sample(t, s)), 1, collector.FPGABitstreamInfo, afu...)

	tree.SetErr(n3000+"/dfl-port.0/afu_id", syscall.EBUSY)
	d := one(t, sample(t, s)) // no error
	want(t, d, 1, collector.FPGABitstreamInfo, afu...)
	want(t, d, 0, collector.FPGABitstreamLoaded, "port0")

	// The port was reset: the same function is there, nothing was loaded.
	tree.Set(n3000+"/dfl-port.0/afu_id", afu[2]+"\n")
	d = one(t, sample(t, s))
	want(t, d, 1, collector.FPGABitstreamLoaded, "port0")
	want(t, d, 0, collector.FPGAReconfigurations, "port0", "ok")
}

// TestTrap05PowerUnits: the board controllers of N6000 and N6001 return
// milliwatts, the others microwatts.
func TestTrap05PowerUnits(t *testing.T) {
	for _, c := range []struct {
		tree, file, text string
		want             float64
	}{
		{"intel-n6001-ofs", "hwmon4/power1_input", "44522\n", 44.522},
		{"intel-n6001-ofs", "hwmon4/power1_input", "50909\n", 50.909},
		{"intel-n6001-ofs", "hwmon4/power1_input", "44522000\n", 44.522}, // a driver that has been mended
		{"intel-n3000-dfl", "hwmon6/power1_input", "64709000\n", 64.709},
		{"intel-pac-a10-dfl", "hwmon3/power1_input", "21000000\n", 21},
	} {
		tree := load(t, c.tree)
		tree.Set("/sys/class/hwmon/"+c.file, c.text)
		want(t, one(t, sample(t, open(t, written(t, tree), quiet))), c.want, collector.PowerWatts)
	}
	tree := load(t, "intel-n3000-dfl")
	tree.Set("/sys/class/hwmon/hwmon6/power1_input", "64709\n")
	d := one(t, sample(t, open(t, written(t, tree), quiet)))
	wantNone(t, d, collector.PowerWatts)
	if !slices.Contains(d.Rejects, collector.Reject{Metric: collector.PowerWatts, Reason: collector.RejectRange}) {
		t.Errorf("a card of 65 mW is not rejected: %v", d.Rejects)
	}
}

// TestPowerOfSupplies: the power of a board without a power sensor is the sum
// of its two supplies.
func TestPowerOfSupplies(t *testing.T) {
	tree := load(t, "intel-n3000-dfl")
	tree.Remove("/sys/class/hwmon/hwmon6/power1_input")
	// The labels of drivers/hwmon/intel-m10-bmc-hwmon.c.
	n3000 := [4]string{"12164", "3099", "12201", "2214"}
	for name, board := range map[string]struct {
		supplies [2]string
		values   [4]string
		want     float64
	}{
		"n3000bmc_hwmon": {[2]string{"12V Backplane", "12V AUX"}, n3000, 12.164*3.099 + 12.201*2.214},
		"n5010bmc_hwmon": {[2]string{"Backplane 12V", "AUX 12V"}, n3000, 12.164*3.099 + 12.201*2.214},
		// The values of mock_sys_dfl_d5005_nlb0 in the OPAE SDK, a capture.
		"d5005bmc_hwmon": {[2]string{"12v Backplane", "12v AUX"}, [4]string{"12153", "2802", "12179", "1474"}, 52.004552},
	} {
		tree, supplies := tree.Clone(), board.supplies
		tree.Set("/sys/class/hwmon/hwmon6/name", name+"\n")
		for _, p := range tree.Paths() {
			text, _ := tree.Get(p)
			if s, ok := strings.CutPrefix(text, "12V Backplane "); ok {
				tree.Set(p, supplies[0]+" "+s)
			} else if s, ok := strings.CutPrefix(text, "12V AUX "); ok {
				tree.Set(p, supplies[1]+" "+s)
			} else if i := slices.Index(n3000[:], strings.TrimSpace(text)); i >= 0 && strings.HasSuffix(p, "_input") {
				tree.Set(p, board.values[i]+"\n")
			}
		}
		got, _ := value(one(t, sample(t, open(t, written(t, tree), quiet))), collector.PowerWatts)
		if math.Abs(got-board.want) > 1e-9 {
			t.Errorf("%s: %v W, want %v", name, got, board.want)
		}
	}
	tree.Remove("/sys/class/hwmon/hwmon6/curr3_input") // one supply is incomplete
	wantNone(t, one(t, sample(t, open(t, written(t, tree), quiet))), collector.PowerWatts)
}

// TestRejectsCountOnce: a permanently wrong sensor is counted once, and again
// when it starts again.
func TestRejectsCountOnce(t *testing.T) {
	tree := load(t, "intel-n3000-dfl")
	s := open(t, mounted(t, tree), quiet)
	input := "/sys/class/hwmon/hwmon6/temp2_input"
	for i, c := range []struct {
		text string
		want int
	}{{"50000\n", 4}, {"50000\n", 0}, {"nan\n", 1}, {"nan\n", 0}, {"51000\n", 0}, {"nan\n", 1}} {
		tree.Set(input, c.text)
		if d := one(t, sample(t, s)); len(d.Rejects) != c.want {
			t.Errorf("step %d: %v, want %d", i, d.Rejects, c.want)
		}
	}
}

// TestTrap06ThresholdsThatAreNone: a limit of 0, a limit that a healthy part
// always exceeds and a warning above its critical limit are left out; a part
// that is too hot keeps its limits.
func TestTrap06ThresholdsThatAreNone(t *testing.T) {
	tree := load(t, "intel-n6001-ofs")
	d := one(t, sample(t, open(t, written(t, tree), quiet)))
	want(t, d, 44.5, collector.TemperatureCelsius, "QSFP1 Temperature")
	wantNone(t, d, collector.TemperatureLimit, "QSFP1 Temperature", "critical")
	wantNone(t, d, collector.TemperatureLimit, "CVL Core Voltage VR Temperature", "critical")
	wantNone(t, d, collector.TemperatureCelsius, "Columbiaville Die Temperature") // -256 as unsigned

	const fabric = "FPGA P-TILE Temperature" // 54, limits 83 and 88
	want(t, d, 88, collector.TemperatureLimit, fabric, "critical")
	tree.Set("/sys/class/hwmon/hwmon4/temp5_input", "95500\n")
	tree.Set("/sys/class/hwmon/hwmon4/temp6_max", "99000\n") // above its critical 88
	d = one(t, sample(t, open(t, written(t, tree), quiet)))
	want(t, d, 95.5, collector.TemperatureCelsius, fabric)
	want(t, d, 88, collector.TemperatureLimit, fabric, "critical")
	want(t, d, 83, collector.TemperatureLimit, fabric, "warning")
	wantNone(t, d, collector.TemperatureLimit, "FPGA FABRIC Digital Temperature#1", "warning")
	wantNone(t, d, collector.TemperatureLimit, "FPGA FABRIC Digital Temperature#1", "critical")
}

// TestTrap07DummyThermal: the thermal feature of OFS cards has no sensor
// behind it.
func TestTrap07DummyThermal(t *testing.T) {
	d := one(t, sample(t, open(t, written(t, load(t, "intel-n6001-ofs")), quiet)))
	wantNone(t, d, collector.TemperatureCelsius, "FPGA")

	// With thresholds it is a sensor, even at 0.
	tree := load(t, "intel-pac-a10-dfl")
	tree.Set("/sys/class/hwmon/hwmon2/temp1_input", "0\n")
	d = one(t, sample(t, open(t, written(t, tree), quiet)))
	want(t, d, 0, collector.TemperatureCelsius, "FPGA")
}

// TestTrap12PowerState: the driver prints 0x0 where its documentation has 0.
func TestTrap12PowerState(t *testing.T) {
	for text, state := range map[string]string{
		"0\n": "normal", "0x0\n": "normal", "0x1\n": "ap1", "1\n": "ap1", "0x2\n": "ap2", "6\n": "ap6", "0x6\n": "ap6", "0x5\n": "other",
	} {
		tree := load(t, "intel-pac-a10-dfl")
		tree.Set(pac+"/dfl-port.0/power_state", text)
		d := one(t, sample(t, open(t, written(t, tree), quiet)))
		for _, s := range []string{"normal", "ap1", "ap2", "ap6", "other"} {
			want(t, d, map[bool]float64{true: 1}[s == state], collector.FPGAThrottleState, "port0", s)
		}
	}
}

// TestTrap13Renumbered: after a driver is bound again its sensors have another
// number. They are found at once, under the same names.
func TestTrap13Renumbered(t *testing.T) {
	tree := load(t, "intel-n3000-dfl")
	s := open(t, mounted(t, tree), fpga.Options{PollInterval: -1, SlowInterval: time.Hour})
	before := one(t, sample(t, s))
	dir, ok := tree.Real("/sys/class/hwmon/hwmon6")
	if !ok {
		t.Fatal("no hwmon6")
	}
	renamed := strings.TrimSuffix(dir, "hwmon6") + "hwmon2"
	if err := tree.Rename(dir, renamed); err != nil {
		t.Fatal(err)
	}
	tree.Remove("/sys/class/hwmon/hwmon6")
	tree.Link("/sys/class/hwmon/hwmon2", "../../"+strings.TrimPrefix(renamed, "/sys/"))
	sample(t, s) // finds that the files are missing
	after := one(t, sample(t, s))
	if got, want := series(&after), series(&before); !slices.Equal(got, want) {
		t.Errorf("after:\n%s\nbefore:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestTrap14VanishesMidRead: files that disappear between listing and reading
// are no errors, and a card that left is not in the Round.
func TestTrap14VanishesMidRead(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.ENODEV, syscall.ENOENT, syscall.ENXIO} {
		tree := load(t, "intel-n3000-dfl")
		s := open(t, mounted(t, tree), quiet)
		sample(t, s)
		for _, p := range tree.Paths() {
			if strings.Contains(p, "/dfl-port.0/") && strings.HasPrefix(p, "/sys/devices/") {
				tree.SetErr(p, errno)
			}
		}
		d := one(t, sample(t, s)) // no error
		wantNone(t, d, collector.FPGABitstreamLoaded, "port0")
	}
	for _, name := range []string{"intel-n3000-dfl", "intel-pac-a10-dfl", "intel-n6001-ofs"} {
		tree := load(t, name)
		s := open(t, mounted(t, tree), quiet)
		d := one(t, sample(t, s))
		dir, _ := tree.Real("/sys/bus/pci/devices/" + d.ID)
		tree.Remove(dir) // the links in bus and class dangle
		if r := sample(t, s); len(r.Devices) != 0 {
			t.Errorf("%s: %d devices after it fell off the bus", name, len(r.Devices))
		}
		if r := sample(t, s); len(r.Devices) != 0 || len(r.Distributions) == 0 {
			t.Errorf("%s: %d devices, %d distributions; want none, and what was counted", name, len(r.Devices), len(r.Distributions))
		}
	}
}

// TestTrap16DeviceTreeTexts: properties of the device tree are strings that
// end in NUL, and can be several.
func TestTrap16DeviceTreeTexts(t *testing.T) {
	for content, id := range map[string]string{
		"vadd_wrapper.bit.bin\x00":     "vadd_wrapper.bit.bin",
		"vadd_wrapper.bit.bin":         "vadd_wrapper.bit.bin",
		"base.bit.bin\x00part.bin\x00": "base.bit.bin,part.bin",
		"odd\x01\xffname\x00":          "odd ?name",
	} {
		tree := load(t, "zynqmp-fpga-manager")
		tree.Set("/sys/firmware/devicetree/base/fpga-full/firmware-name", content)
		d := one(t, sample(t, open(t, written(t, tree), quiet)))
		want(t, d, 1, collector.FPGABitstreamInfo, "fpga-full", "firmware", id)
		if d.Model != "ZynqMP ZCU102 Rev1.0" {
			t.Errorf("model %q", d.Model)
		}
	}
	tree := load(t, "zynqmp-fpga-manager")
	tree.Set("/sys/firmware/devicetree/base/fpga-full/firmware-name", "\x00")
	wantNone(t, one(t, sample(t, open(t, written(t, tree), quiet))), collector.FPGABitstreamInfo)
}

// TestTrap20NeverOpened: only files on the allow-list are opened, and none
// whose reading does harm, in any tree, over several rounds.
func TestTrap20NeverOpened(t *testing.T) {
	for _, name := range []string{"intel-n3000-dfl", "intel-n6001-ofs", "intel-pac-a10-dfl", "zynqmp-fpga-manager"} {
		t.Run(name, func(t *testing.T) {
			tree := load(t, name)
			for _, p := range tree.Paths() {
				if harmful(p) {
					tree.Forbid(p)
				}
			}
			s := open(t, mounted(t, tree), fpga.Options{PollInterval: time.Millisecond, SlowInterval: time.Nanosecond})
			for range 3 {
				sample(t, s)
			}
			for _, v := range tree.Violations() {
				t.Error(v)
			}
			opened := 0
			for _, p := range tree.Opened() {
				if _, file := tree.Get(p); !file {
					continue // directories are listed
				}
				if opened++; !slices.ContainsFunc(allowed, func(s string) bool { return strings.HasSuffix(stripDigits(p), s) }) {
					t.Errorf("%s was opened: if that does no harm, add it to the list here and to the family's", p)
				}
			}
			if opened == 0 {
				t.Error("nothing was opened")
			}
		})
	}
}

// harmful reports whether opening a file of these drivers does harm or reveals
// a secret.
func harmful(p string) bool {
	for _, s := range []string{
		"/key", "/flags", "/firmware", "/error", "/stats_begin", "/stats_end", "/stat", "/mig_cache_update",
		"/remove", "/rescan", "/reset", "/enable", "/config", "/sriov_numvfs",
		"/userclk_freqcmd", "/userclk_freqcntrcmd", "/first_malformed_req", "/loading", "/cancel", "/data",
		"/image_load", "/bmc_canceled_csks", "/temp1_max_policy", "/power1_ltr",
	} {
		if strings.HasSuffix(p, s) {
			// The error of a firmware upload is none that a read clears.
			return s != "/error" || !strings.Contains(p, "/secure-update")
		}
	}
	return false
}

// stripDigits removes the digits of a path's last two elements, so that files
// of one kind are equal.
func stripDigits(p string) string {
	parts := strings.Split(p, "/")
	for i := max(len(parts)-2, 0); i < len(parts); i++ {
		parts[i] = strings.Map(func(r rune) rune {
			if r >= '0' && r <= '9' {
				return -1
			}
			return r
		}, parts[i])
	}
	return strings.Join(parts, "/")
}

// allowed are the ends of the paths that DFL and fpga_manager may open, without
// digits. It is a second list on purpose: an addition to a family's list must
// be intended.
var allowed = []string{
	"/vendor", "/device", "/subsystem_device", "/numa_node",
	"/fpga/name", "/fpga/state", "/fpga/status", "/region/compat_id", "/br/state",
	"/bitstream_id", "/bitstream_metadata",
	"/errors/fme_errors", "/errors/pcie_errors", "/errors/nonfatal_errors", "/errors/catfatal_errors", "/errors/inject_errors", "/errors/revision", "/errors/errors",
	"/dfl-port./id", "/afu_id", "/power_state",
	"/inf_cal_fail", "/inf_init_done", "/nios_fw_version", "/bmc_version", "/bmcfw_version",
	"_root_entry_hash", "/security/flash_count", "/control/fpga_boot_image", "/control/power_on_image",
	"/secure-update/error",
	"/hwmon/name", "/hwmon/temp_input", "/hwmon/temp_label", "/hwmon/temp_max", "/hwmon/temp_crit", "/hwmon/temp_emergency",
	"/hwmon/temp_max_alarm", "/hwmon/temp_crit_alarm",
	"/hwmon/in_input", "/hwmon/in_label", "/hwmon/in_min", "/hwmon/in_lcrit", "/hwmon/in_max", "/hwmon/in_crit",
	"/hwmon/curr_input", "/hwmon/curr_label", "/hwmon/curr_max", "/hwmon/curr_crit",
	"/hwmon/power_input", "/hwmon/power_label", "/hwmon/power_max", "/hwmon/power_crit", "/hwmon/power_max_alarm", "/hwmon/power_crit_alarm",
	"firmware:pcap/status", "/fpga-full/uevent", "/base/model", "/fpga-full/firmware-name",
	"/iio:device/name", "/iio:device/in_temp_raw", "/iio:device/in_temp_scale", "/iio:device/in_temp_offset",
	"/iio:device/in_voltage_raw", "/iio:device/in_voltage_scale",
}

// TestSwappedCard: the card that replaces another at the same address is read
// as itself.
func TestSwappedCard(t *testing.T) {
	for _, c := range []struct{ tree, device, model string }{
		{"intel-n3000-dfl", "/sys/bus/pci/devices/0000:1b:00.0/device", "Intel FPGA PAC D5005"},
		{"xilinx-u250-xrt", u250 + "/device", "ALVEO U50"},
	} {
		tree := load(t, c.tree)
		s := open(t, mounted(t, tree), fpga.Options{PollInterval: -1, SlowInterval: time.Nanosecond})
		before := one(t, sample(t, s)).Model
		tree.Set(c.device, "0x0b2b\n")
		tree.Set(mgmt+"/xmc.m.18874368/bd_name", "ALVEO U50\n")
		until(t, s, "the other card", func(r collector.Round, _ error) bool {
			return len(r.Devices) == 1 && r.Devices[0].Model == c.model && r.Devices[0].Down == ""
		})
		if before == c.model {
			t.Errorf("%s from the start", before)
		}
	}
}

// TestTextsThatAreNone: an empty or garbled text is no value, and a card of
// which only directories are left does not answer.
func TestTextsThatAreNone(t *testing.T) {
	for _, text := range []string{"", "\n", "junk\n", "2\n"} {
		tree := load(t, "intel-n6001-ofs")
		for _, p := range tree.Paths() {
			if strings.HasSuffix(p, "_cal_fail") || text != "2\n" && strings.HasSuffix(p, "/bitstream_id") {
				tree.Set(p, text)
			}
		}
		d := one(t, sample(t, open(t, written(t, tree), quiet)))
		for _, r := range d.Readings {
			if r.Metric == collector.FPGAMemoryCalibrated || r.Metric == collector.FPGABitstreamInfo && r.Labels[1] == "fim" && text != "2\n" {
				t.Errorf("%q: %s is %v", text, seriesName(r.Metric, r.Labels), r.Value)
			}
		}
		if !slices.Contains(d.Rejects, collector.Reject{Metric: collector.FPGAMemoryCalibrated, Reason: collector.RejectType}) {
			t.Errorf("%q: %v", text, d.Rejects)
		}
	}

	tree := load(t, "intel-n3000-dfl")
	for _, p := range tree.Paths() {
		if _, file := tree.Get(p); file {
			tree.SetErr(p, syscall.ENOENT)
		}
	}
	ctx := t.Context()
	r, err := open(t, mounted(t, tree), quiet).Sample(ctx)
	if d := one(t, r); d.Down != collector.ReasonError || len(d.Readings) > 2 {
		t.Errorf("%q (%v): %q", d.Down, err, series(&d))
	}

	tree = load(t, "intel-n3000-dfl")
	s := open(t, mounted(t, tree), quiet)
	want(t, one(t, sample(t, s)), 1, collector.FPGACardState, "ready")
	tree.Set(n3000+"/dfl-port.0/afu_id", strings.Repeat("f", 32)+"\n")
	want(t, one(t, sample(t, s)), 1, collector.FPGACardState, "function_dead")
	tree.SetErr(n3000+"/dfl-port.0/afu_id", syscall.EBUSY)
	wantNone(t, one(t, sample(t, s)), collector.FPGACardState, "ready")
}

// TestCardsOfBeforeDFL: a card with the old driver is one device, with what the
// driver has.
func TestCardsOfBeforeDFL(t *testing.T) {
	const dir = "/sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0"
	tree := faketree.New()
	for file, text := range map[string]string{
		"/vendor": "0x8086\n", "/device": "0x09c4\n", "/subsystem_device": "0x0000\n", "/numa_node": "0\n",
		"/fpga/intel-fpga-dev.0/intel-fpga-fme.0/bitstream_id":                                 "0x123000200000185\n",
		"/fpga/intel-fpga-dev.0/intel-fpga-fme.0/pr/interface_id":                              "38d782e3b6125343b9342433e348ac4c\n",
		"/fpga/intel-fpga-dev.0/intel-fpga-fme.0/thermal_mgmt/temperature":                     "52\n",
		"/fpga/intel-fpga-dev.0/intel-fpga-fme.0/power_mgmt/consumed":                          "0x15\n",
		"/fpga/intel-fpga-dev.0/intel-fpga-fme.0/intel-fpga-fme-mgr.0/fpga_manager/fpga0/name": "Intel FPGA Manager\n",
		"/fpga/intel-fpga-dev.0/intel-fpga-port.0/afu_id":                                      "d8424dc4a4a3c413f89e433683f9040b\n",
	} {
		tree.Set(dir+file, text)
	}
	tree.Link("/sys/bus/pci/devices/0000:3b:00.0", "../../../devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0")
	tree.Link("/sys/class/fpga/intel-fpga-dev.0", "../../devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0/fpga/intel-fpga-dev.0")
	tree.Link("/sys/class/fpga_manager/fpga0", "../../devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0/fpga/intel-fpga-dev.0/intel-fpga-fme.0/intel-fpga-fme-mgr.0/fpga_manager/fpga0")
	d := one(t, sample(t, open(t, written(t, tree), quiet)))
	if d.PCI != "0000:3b:00.0" || d.Model != "Intel PAC with Arria 10 GX" || d.Down != "" || !slices.Contains(d.KubeIDs, "intel-fpga-port.0") {
		t.Errorf("%+v", d)
	}
	want(t, d, 52, collector.TemperatureCelsius, "FPGA")
	want(t, d, 21, collector.PowerWatts)
	want(t, d, 1, collector.FPGABitstreamInfo, "port0", "afu", "d8424dc4a4a3c413f89e433683f9040b")
	want(t, d, 1, collector.FPGABitstreamInfo, "static", "fim", "0x123000200000185")
}

// TestSensorsOfSoCBoards: the power monitor of a Kria module and the sensors of an
// Agilex belong to the only FPGA; other chips are not opened.
func TestSensorsOfSoCBoards(t *testing.T) {
	tree := load(t, "zynqmp-fpga-manager")
	for dir, files := range map[string]map[string]string{
		"/sys/devices/platform/axi/ff030000.i2c/i2c-1/1-0040/hwmon/hwmon7":   {"name": "ina260_u14\n", "power1_input": "3520000\n", "in1_input": "5012\n", "curr1_input": "702\n"},
		"/sys/devices/platform/axi/ff030000.i2c/i2c-1/1-0050/hwmon/hwmon8":   {"name": "other\n", "power1_input": "1\n"},
		"/sys/devices/platform/firmware:svc/firmware:svc:hwmon/hwmon/hwmon9": {"name": "soc64hwmon\n", "temp1_input": "41250\n", "temp1_label": "Main Die SDM\n", "in0_input": "806\n"},
		"/sys/devices/virtual/thermal/thermal_zone0/hwmon10":                 {"name": "cpu_thermal\n", "temp1_input": "40000\n"},
	} {
		for file, text := range files {
			tree.Set(dir+"/"+file, text)
		}
		tree.Link("/sys/class/hwmon/"+filepath.Base(dir), "../../"+strings.TrimPrefix(dir, "/sys/"))
	}
	d := one(t, sample(t, open(t, written(t, tree), quiet)))
	want(t, d, 3.52, collector.FPGARailPower, "ina260_u14 power1")
	want(t, d, 5.012, collector.FPGAVoltage, "ina260_u14 in1")
	want(t, d, 0.702, collector.FPGACurrent, "ina260_u14 curr1")
	want(t, d, 41.25, collector.TemperatureCelsius, "soc64hwmon Main Die SDM")
	want(t, d, 0.806, collector.FPGAVoltage, "soc64hwmon in0")
	wantNone(t, d, collector.PowerWatts)
}
