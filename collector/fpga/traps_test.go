package fpga_test

import (
	"errors"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/collector/fpga"
	"github.com/accel-exporter/accel-exporter/internal/sim/golden"
)

// The traps of the drivers' files that a case cannot show, by their numbers in the
// list of traps that all families share.

const (
	n3000 = "/sys/bus/pci/devices/0000:1b:00.0/fpga_region/region0"
	pcap  = "/sys/devices/platform/firmware:zynqmp-firmware/firmware:zynqmp-firmware:pcap"
	u250  = "/sys/bus/pci/devices/0000:5e:00.1"
	mgmt  = "/sys/bus/pci/devices/0000:5e:00.0"
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

// TestTrap14VanishesMidRead: files that disappear between listing and reading
// are no errors. A card of which nothing is left but directories does not answer, and a
// card that left is not in the Round, which still has what was counted.
func TestTrap14VanishesMidRead(t *testing.T) {
	for _, c := range []struct {
		tree, part, down string
		functions        []string
	}{
		{"intel-n3000-dfl", "/dfl-port.0/", "", []string{"0000:1b:00.0"}},
		{"intel-n3000-dfl", "/0000:1b:00.", collector.ReasonError, []string{"0000:1b:00.0"}},
		{"intel-n6001-ofs", "/0000:b1:00.", collector.ReasonError, []string{"0000:b1:00.0"}},
		{"intel-pac-a10-dfl", "/0000:3b:00.", collector.ReasonError, []string{"0000:3b:00.0"}},
		{"xilinx-u250-xrt", "/0000:5e:00.", collector.ReasonError, []string{"0000:5e:00.0", "0000:5e:00.1"}},
	} {
		for _, errno := range []syscall.Errno{syscall.ENODEV, syscall.ENOENT, syscall.ENXIO} {
			tree := load(t, c.tree)
			s := open(t, mounted(t, tree), quiet)
			sample(t, s)
			for _, p := range tree.Paths() {
				if _, file := tree.Get(p); file && strings.Contains(p, c.part) && tree.Err(p) == 0 {
					tree.SetErr(p, errno)
				}
			}
			d := one(t, sample(t, s)) // no error
			wantNone(t, d, collector.FPGABitstreamLoaded, "port0")
			if d.Down != c.down {
				t.Errorf("%s: %v: down is %q", c.tree, errno, d.Down)
			}
			for _, r := range d.Readings {
				if d.Down != "" && !r.Metric.Kind.Stays() {
					t.Errorf("%s: %v: %s of a card that cannot be read", c.tree, errno, r.Metric.Name)
				}
			}
			for _, f := range c.functions {
				dir, _ := tree.Real("/sys/bus/pci/devices/" + f)
				tree.Remove(dir) // the links in bus and class dangle
			}
			for range 2 {
				if r := sample(t, s); len(r.Devices) != 0 {
					t.Errorf("%s: %d devices after it fell off the bus", c.tree, len(r.Devices))
				}
			}
		}
	}
}

// forbidden are files whose reading has an effect, and writable files, of every
// card here. Files with a note in their tree, and files without a read bit, are
// forbidden anyway.
var forbidden = []string{
	"/sys/devices/*/*/*/error", "/sys/devices/*/*/*/mig_cache_update", "/sys/devices/*/*/*/fdt_blob",
	"/sys/devices/*/*/*/config_mailbox_*", "/sys/devices/*/*/*/shutdown", "/sys/devices/*/*/*/rp_program",
	"/sys/devices/*/*/*/config", "/sys/devices/*/*/*/resource*", "/sys/devices/*/*/*/enable", "/sys/devices/*/*/*/reset",
	"/sys/devices/*/*/*/cu.*/stat", "/sys/devices/*/*/*/cu.*/stats_*", "/sys/devices/*/*/*/cu.*/crc_buf",
	"/sys/devices/*/*/*/mig.u.*/*", "/sys/devices/*/*/*/firewall.u.*/clear", "/sys/devices/*/*/*/firewall.u.*/inject", "/sys/devices/*/*/*/icap.*/rp_bit",
	"/sys/devices/*/*/*/icap.*/data_retention", "/sys/devices/*/*/*/xmc.*/pause", "/sys/devices/*/*/*/xmc.*/reset",
	"/sys/devices/*/*/*/xmc.*/xmc_power", "/sys/devices/*/*/*/xgq_vmr.*/program_*",
	"/sys/devices/*/*/*/hwmon/*/temp15_*", "/sys/devices/*/*/*/hwmon/*/power2_*",
	"/sys/devices/*/*/*/hwmon/*/*_average", "/sys/devices/*/*/*/hwmon/*/*_highest",
}

// TestTrap20NeverOpened: in every state of the cards no harmful file is opened, and
// only files in testdata/opened.golden: an addition must be intended.
func TestTrap20NeverOpened(t *testing.T) {
	var files []string
	for _, name := range append(slices.Clone(trees),
		"variants/u250-cu-crashed", "variants/u250-firewall", "variants/u250-many-units", "variants/u250-resetting",
		"variants/u250-user-only", "variants/u250-xclbin-changed", "variants/u250-xclbin-loading", "variants/u250-xclbin-null",
	) {
		tree := load(t, name)
		tree.Forbid(forbidden...)
		if name != "variants/u250-user-only" { // a read may ask the host
			tree.Forbid("/sys/devices/*/*/*/firewall.u.*/*")
		}
		if strings.HasPrefix(name, "v8") {
			tree.Forbid("/sys/devices/*/*/*/hwmon/*/*_input")
		}
		s := open(t, mounted(t, tree), fpga.Options{PollInterval: 10 * time.Millisecond, SlowInterval: time.Nanosecond})
		for range 3 {
			sample(t, s)
		}
		if v := tree.Violations(); len(v) > 0 {
			t.Errorf("%s: %s", name, strings.Join(v, "\n"))
		}
		for _, p := range opened(tree) {
			files = append(files, kindOf(p))
		}
	}
	// Harmful files that are opened, and files that are written, are found.
	tree := load(t, "xilinx-u250-xrt")
	tree.Forbid("/sys/devices/*/*/*/device")
	if err := tree.Edit("note", []byte("#note\tsecret-never-open\t"+u250+"/vendor\n")); err != nil {
		t.Fatal(err)
	}
	fs := mounted(t, tree)
	sample(t, open(t, fs, quiet))
	if err := os.WriteFile(fs.Path("bus/pci/devices/0000:5e:00.1/class"), nil, 0o600); !errors.Is(err, syscall.EROFS) {
		t.Errorf("written: %v", err)
	}
	if v := strings.Join(tree.Violations(), "\n"); !strings.Contains(v, "/device\n") || !strings.Contains(v, "/vendor\n") || !strings.Contains(v, "/class") {
		t.Errorf("found only %q", v)
	}
	slices.Sort(files)
	golden.Compare(t, "testdata/opened.golden", strings.Join(slices.Compact(files), "\n")+"\n")
}

// kindOf is the end of a path below its PCI function without digits, so that files of
// one kind are equal.
func kindOf(p string) string {
	_, file, below := strings.Cut(p[strings.LastIndex(p, "/0000:")+1:], "/")
	if !below {
		file = p
	}
	file = strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, file)
	dir, name := path.Split(file)
	parent, middle := path.Split(strings.TrimSuffix(dir, "/"))
	return strings.TrimPrefix(path.Join(path.Base(parent), middle, name), "./")
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
