package fpga_test

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/sim/golden"
)

// The traps of the files of XRT, AMI and AWS, by their numbers in the list of
// traps that all families share.

const (
	u250 = "/sys/bus/pci/devices/0000:5e:00.1"
	mgmt = "/sys/bus/pci/devices/0000:5e:00.0"
	v80  = "/sys/bus/pci/devices/0000:81:00.0"
)

// image is the loaded image of the U250 of the fixture.
var image = []string{"slot0", "xclbin", "2a44fc56-4eba-430c-95a4-13fa87dee9cc"}

// names returns the values of the n-th label of a family.
func names(d collector.Device, m *collector.Metric, n int) []string {
	var out []string
	for _, r := range d.Readings {
		if r.Metric == m && !slices.Contains(out, r.Labels[n]) {
			out = append(out, r.Labels[n])
		}
	}
	slices.Sort(out)
	return out
}

// TestTwoFirewalls: errors latched by one part are neither cleared nor counted
// again by the other, and are kept while one of them does not answer.
func TestTwoFirewalls(t *testing.T) {
	const first, second = mgmt + "/firewall.m.16777216", mgmt + "/firewall.m.16777217"
	tree := load(t, "xilinx-u250-xrt")
	for _, file := range []string{"level", "detected_trip"} {
		tree.Set(second+"/"+file, "0\n")
	}
	tree.Set(second+"/level", "18446744073709551615\n")
	s := open(t, mounted(t, tree), quiet)
	want(t, one(t, sample(t, s)), 0, collector.FPGAErrorsLatched, "firewall")
	tree.Set(first+"/level", "2\n")
	tree.Set(first+"/detected_trip", "status_bit19:RECS_WRITE_TO_BVALID_MAX_WAIT\n")
	for range 3 {
		d := one(t, sample(t, s))
		want(t, d, 1, collector.FPGAFirewallTripped, "axi0")
		want(t, d, 0, collector.FPGAFirewallTripped, "axi1")
		want(t, d, 1, collector.FPGAErrorsLatched, "firewall")
		want(t, d, 1, collector.FPGAErrors, "firewall")
		if got := names(d, collector.FPGAErrorLatched, 1); len(got) != 1 {
			t.Errorf("latched: %q", got)
		}
	}
	tree.Set(first+"/level", "none\n")
	wantNone(t, one(t, sample(t, s)), collector.FPGAErrorsLatched, "firewall")
	tree.Set(first+"/level", "2\n")
	want(t, one(t, sample(t, s)), 1, collector.FPGAErrors, "firewall")
}

// TestTrap04FirewallLevel: the level of a firewall that has not tripped is
// 2^64-1.
func TestTrap04FirewallLevel(t *testing.T) {
	firewall := mgmt + "/firewall.m.16777216"
	for text, tripped := range map[string]float64{"18446744073709551615\n": 0, "0\n": 1, "3\n": 1} {
		tree := load(t, "xilinx-u250-xrt")
		tree.Set(firewall+"/level", text)
		d := one(t, sample(t, open(t, written(t, tree), quiet)))
		want(t, d, tripped, collector.FPGAFirewallTripped, "axi0")
	}

	tree := load(t, "xilinx-u250-xrt")
	s := open(t, mounted(t, tree), quiet)
	d := one(t, sample(t, s))
	want(t, d, 0, collector.FPGAErrors, "firewall")
	tree.Set(firewall+"/level", "2\n")
	tree.Set(firewall+"/detected_trip", "status_bit19:RECS_WRITE_TO_BVALID_MAX_WAIT\nlevel_name:ulp_data_0\naraddr:0x0\n")
	d = one(t, sample(t, s))
	want(t, d, 1, collector.FPGAErrorLatched, "firewall", "recs_write_to_bvalid_max_wait")
	want(t, d, 1, collector.FPGAErrors, "firewall")
	// After a reset the count stays and nothing is latched.
	tree.Set(firewall+"/level", "18446744073709551615\n")
	d = one(t, sample(t, s))
	want(t, d, 0, collector.FPGAFirewallTripped, "axi0")
	want(t, d, 0, collector.FPGAErrorLatched, "firewall", "recs_write_to_bvalid_max_wait")
	want(t, d, 1, collector.FPGAErrors, "firewall")

	tree.Set(firewall+"/level", "none\n")
	d = one(t, sample(t, s))
	wantNone(t, d, collector.FPGAFirewallTripped, "axi0")
	if !slices.Contains(d.Rejects, collector.Reject{Metric: collector.FPGAFirewallTripped, Reason: collector.RejectType}) {
		t.Errorf("rejects: %v", d.Rejects)
	}
}

// TestTrap06LimitsInTheWrongOrder: a warning above the next limit makes both
// invalid, and a limit of 0 is none.
func TestTrap06LimitsInTheWrongOrder(t *testing.T) {
	d := one(t, sample(t, open(t, written(t, load(t, "v80-ami")), quiet)))
	wantNone(t, d, collector.TemperatureLimit, "VCCINT", "warning")
	wantNone(t, d, collector.TemperatureLimit, "VCCINT", "critical")
	want(t, d, 125, collector.TemperatureLimit, "VCCINT", "fatal")
	wantNone(t, d, collector.TemperatureLimit, "HBM", "warning")
	wantNone(t, d, collector.FPGASensorAlarm, "HBM", "warning")
	want(t, d, 105, collector.TemperatureLimit, "HBM", "critical")
	// An empty cage has limits and no module that could exceed them.
	wantNone(t, d, collector.TemperatureLimit, "Module_0", "critical")
	wantNone(t, d, collector.FPGASensorAlarm, "Module_0", "critical")
}

// TestTrap09Images: no image, one, several, and slots with a null image.
func TestTrap09Images(t *testing.T) {
	const second, null = "00c4f3f5-fb4f-5ac7-0bd9-3a1e1c1f0a11", "00000000-0000-0000-0000-000000000000"
	for _, c := range []struct{ name, text, slot0, slot1 string }{
		{"one", image[2] + "\n", image[2], ""},
		{"none", "", "", ""},
		{"null", null + "\n", "", ""},
		{"two", image[2] + "\n" + second + "\n", image[2], second},
		{"null and one", null + "\n" + second + "\n", "", second},
	} {
		tree := load(t, "xilinx-u250-xrt")
		tree.Set(u250+"/xclbinuuid", c.text)
		d := one(t, sample(t, open(t, written(t, tree), quiet)))
		want(t, d, map[bool]float64{true: 1}[c.slot0 != ""], collector.FPGABitstreamLoaded, "slot0")
		for slot, id := range map[string]string{"slot0": c.slot0, "slot1": c.slot1} {
			for _, r := range d.Readings {
				if r.Metric == collector.FPGABitstreamInfo && r.Labels[0] == slot && r.Labels[2] != id {
					t.Errorf("%s: %v", c.name, r.Labels)
				}
			}
			if id != "" {
				want(t, d, 1, collector.FPGABitstreamLoaded, slot)
				want(t, d, 1, collector.FPGABitstreamInfo, slot, "xclbin", id)
			}
		}
	}
	tree := load(t, "xilinx-u250-xrt")
	tree.Set(u250+"/xclbinuuid", "unable to give xclbin id")
	d := one(t, sample(t, open(t, written(t, tree), quiet)))
	wantNone(t, d, collector.FPGABitstreamLoaded, "slot0")
}

// TestTrap10NoImage: the driver returns EINVAL for the memory of a card without an
// image.
func TestTrap10NoImage(t *testing.T) {
	tree := load(t, "xilinx-u250-xrt")
	tree.SetErr(u250+"/memstat", syscall.EINVAL)
	d := one(t, sample(t, open(t, mounted(t, tree), quiet)))
	wantNone(t, d, collector.MemoryUsed)
}

// TestTrap11ManyUnits: the list of compute units does not fit into a page, and
// the driver hands out whole lines.
func TestTrap11ManyUnits(t *testing.T) {
	tree := load(t, "variants/u250-many-units")
	text, _ := tree.Get(u250 + "/kds_custat_raw")
	units := strings.Count(text, "\n")
	if len(text) <= 4096 {
		t.Fatalf("%d bytes fit into a page", len(text))
	}
	d := one(t, sample(t, open(t, mounted(t, tree), quiet)))
	if got := names(d, collector.FPGAExecutions, 0); len(got) != units {
		t.Errorf("%d units, want %d", len(got), units)
	}
	if reads, pages := tree.Reads(u250+"/kds_custat_raw"), len(text)/4096+1; reads > pages+1 {
		t.Errorf("%d reads of %d pages", reads, pages)
	}

	// A line less than a page: read twice; a short list is read once.
	short := load(t, "xilinx-u250-xrt")
	one(t, sample(t, open(t, mounted(t, short), quiet)))
	if reads := short.Reads(u250 + "/kds_custat_raw"); reads != 1 {
		t.Errorf("a short list is read %d times", reads)
	}
}

// TestTrap13RenumberedHwmon: hwmon5 of before is hwmon9 now.
func TestTrap13RenumberedHwmon(t *testing.T) {
	tree := load(t, "v80-ami")
	s := open(t, mounted(t, tree), quiet)
	want(t, one(t, sample(t, s)), 1, collector.FPGASensorAlarm, "DEVICE", "critical")
	if err := tree.Rename(v80+"/hwmon/hwmon5", v80+"/hwmon/hwmon9"); err != nil {
		t.Fatal(err)
	}
	tree.Set(v80+"/hwmon/hwmon9/temp2_lcrit_alarm", "0\n")
	want(t, one(t, sample(t, s)), 0, collector.FPGASensorAlarm, "DEVICE", "critical")
}

// TestTrap14LeavesWhileRead: files disappear between listing and reading.
func TestTrap14LeavesWhileRead(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.ENODEV, syscall.ENOENT, syscall.ENXIO} {
		tree := load(t, "xilinx-u250-xrt")
		s := open(t, mounted(t, tree), quiet)
		sample(t, s)
		for _, p := range tree.Paths() {
			if strings.Contains(p, "/0000:5e:00.") && tree.Err(p) == 0 {
				if _, isFile := tree.Get(p); isFile {
					tree.SetErr(p, errno)
				}
			}
		}
		d := one(t, sample(t, s)) // no error
		if d.Down != collector.ReasonError {
			t.Errorf("%v: down is %q", errno, d.Down)
		}
		for _, r := range d.Readings {
			if !r.Metric.Kind.Stays() {
				t.Errorf("%v: %s of a card that cannot be read", errno, r.Metric.Name)
			}
		}
	}
	tree := load(t, "xilinx-u250-xrt")
	s := open(t, mounted(t, tree), quiet)
	sample(t, s)
	tree.Unplug(u250)
	tree.Unplug(mgmt)
	if r := sample(t, s); len(r.Devices) != 0 {
		t.Errorf("%d devices after the card left", len(r.Devices))
	}
}

// TestTrap15QueuesEndInNUL: cu_stat ends in a NUL, and has the queues of the
// units.
func TestTrap15QueuesEndInNUL(t *testing.T) {
	d := one(t, sample(t, open(t, written(t, load(t, "variants/u250-cu-crashed")), quiet)))
	want(t, d, 3, collector.FPGAQueueLength, "vadd:vadd_1", "pending")
	want(t, d, 1, collector.FPGAQueueLength, "vadd:vadd_1", "running")
	want(t, d, 0, collector.FPGAQueueLength, "vadd:vadd_2", "pending")
	want(t, d, 1, collector.FPGAComputeUnitState, "vadd:vadd_1", "crashed")
	want(t, d, 0, collector.FPGAComputeUnitState, "vadd:vadd_1", "running")
	want(t, d, 0, collector.FPGAComputeUnitState, "vadd:vadd_2", "crashed")
	want(t, d, 1, collector.FPGACardState, "reset_required")
}

// forbidden are files whose reading has an effect, and writable files, of every
// card here. Files with a note in their tree, and files without a read bit, are
// forbidden anyway.
var forbidden = []string{
	"/sys/devices/*/*/*/error", "/sys/devices/*/*/*/mig_cache_update", "/sys/devices/*/*/*/fdt_blob",
	"/sys/devices/*/*/*/config_mailbox_*", "/sys/devices/*/*/*/shutdown", "/sys/devices/*/*/*/rp_program",
	"/sys/devices/*/*/*/config", "/sys/devices/*/*/*/resource*", "/sys/devices/*/*/*/enable", "/sys/devices/*/*/*/reset",
	"/sys/devices/*/*/*/cu.*/stat", "/sys/devices/*/*/*/cu.*/stats_*", "/sys/devices/*/*/*/cu.*/crc_buf",
	"/sys/devices/*/*/*/mig.u.*/*", "/sys/devices/*/*/*/firewall.u.*/*", "/sys/devices/*/*/*/icap.*/rp_bit",
	"/sys/devices/*/*/*/icap.*/data_retention", "/sys/devices/*/*/*/xmc.*/pause", "/sys/devices/*/*/*/xmc.*/reset",
	"/sys/devices/*/*/*/xmc.*/xmc_power", "/sys/devices/*/*/*/xgq_vmr.*/program_*",
	"/sys/devices/*/*/*/hwmon/*/temp15_*", "/sys/devices/*/*/*/hwmon/*/power2_*",
	"/sys/devices/*/*/*/hwmon/*/*_average", "/sys/devices/*/*/*/hwmon/*/*_highest",
}

// TestTrap20XilinxHarm: in every state of these cards no harmful file is
// opened, and only files in testdata/opened.golden: an addition must be
// intended.
func TestTrap20XilinxHarm(t *testing.T) {
	var files []string
	for _, name := range []string{
		"xilinx-u250-xrt", "aws-f2", "vck5000-xrt", "v80-ami", "variants/u250-cu-crashed", "variants/u250-firewall",
		"variants/u250-many-units", "variants/u250-resetting", "variants/u250-user-only", "variants/u250-xclbin-changed",
		"variants/u250-xclbin-loading", "variants/u250-xclbin-null",
	} {
		tree := load(t, name)
		tree.Forbid(forbidden...)
		if strings.HasPrefix(name, "v8") {
			tree.Forbid("/sys/devices/*/*/*/hwmon/*/*_input")
		}
		s := open(t, mounted(t, tree), quiet)
		for range 3 {
			sample(t, s)
		}
		if v := tree.Violations(); len(v) > 0 {
			t.Errorf("%s: %s", name, strings.Join(v, "\n"))
		}
		for _, p := range opened(tree) {
			_, file, _ := strings.Cut(p[strings.LastIndex(p, "/0000:")+1:], "/")
			files = append(files, stripDigits(file))
		}
	}
	slices.Sort(files)
	golden.Compare(t, "testdata/opened.golden", strings.Join(slices.Compact(files), "\n")+"\n")
}

// TestCardOffTheBus: a card that has left the bus returns ones, which are
// rejected.
func TestCardOffTheBus(t *testing.T) {
	tree := load(t, "xilinx-u250-xrt")
	for _, f := range []string{"xmc_fpga_temp", "xmc_12v_pex_vol", "xmc_vccint_curr", "xmc_fan_rpm"} {
		tree.Set(mgmt+"/xmc.m.18874368/"+f, "-1\n")
	}
	for i := range 4 {
		dir := fmt.Sprintf("%s/mig.m.%d", mgmt, 17825792+i)
		tree.Set(dir+"/ecc_ce_cnt", "4294967295\n")
		tree.Set(dir+"/ecc_status", "4294967295\n")
	}
	d := one(t, sample(t, open(t, written(t, tree), quiet)))
	wantNone(t, d, collector.TemperatureCelsius, "fpga")
	wantNone(t, d, collector.FPGAVoltage, "12v_pex")
	wantNone(t, d, collector.FPGAMemoryECCErrors, "bank0", "corrected")
	wantNone(t, d, collector.FPGAMemoryECCLatched, "bank0", "uncorrected")
	if !slices.Contains(d.Rejects, collector.Reject{Metric: collector.TemperatureCelsius, Reason: collector.RejectSentinel}) {
		t.Errorf("rejects: %v", d.Rejects)
	}
}

// TestBoardPower: the card's power is where its release of XRT and its board
// have it, and never 0.
func TestBoardPower(t *testing.T) {
	const parts = "xmc.m.18874368"
	for _, c := range []struct {
		name, ins, power, hwmon string
		want                    float64
	}{
		{"current", "17423810\n", "9000000\n", "9000000\n", 17.42381},
		{"without xmc_power_ins", "", "16000000\n", "9000000\n", 16},
		{"xmc_power_ins of 0", "0\n", "16000000\n", "9000000\n", 16},
		{"hwmon only", "", "", "15000000\n", 15},
		{"none", "0\n", "0\n", "0\n", 0},
	} {
		tree := load(t, "xilinx-u250-xrt")
		for file, text := range map[string]string{
			mgmt + "/" + parts + "/xmc_power_ins": c.ins, mgmt + "/" + parts + "/xmc_power": c.power,
			mgmt + "/hwmon/hwmon4/power1_input": c.hwmon, u250 + "/hwmon/hwmon5/power1_input": c.hwmon,
		} {
			if tree.Set(file, text); text == "" {
				tree.Remove(file)
			}
		}
		d := one(t, sample(t, open(t, written(t, tree), quiet)))
		if got, ok := value(d, collector.PowerWatts); got != c.want || ok != (c.want > 0) {
			t.Errorf("%s: %v W (there: %v), want %v", c.name, got, ok, c.want)
		}
	}
}
