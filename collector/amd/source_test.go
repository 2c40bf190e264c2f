package amd_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/collector/amd"
	"github.com/accel-exporter/accel-exporter/collector/sysfs"
	"github.com/accel-exporter/accel-exporter/internal/sim/faketree"
	"github.com/accel-exporter/accel-exporter/internal/sim/golden"
	"github.com/accel-exporter/accel-exporter/internal/sim/simtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, tree *faketree.Tree) *amd.Source {
	t.Helper()
	show := simtest.WriteTree
	if faketree.CanMount() {
		show = simtest.MountTree
	}
	sys := show(t, tree)
	s := amd.New(sysfs.New(sys), sysfs.New(filepath.Join(filepath.Dir(sys), "proc")), nil)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func sample(t *testing.T, s *amd.Source) []collector.Device {
	t.Helper()
	r, err := s.Sample(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return r.Devices
}

var value = simtest.Value

// TestGolden: the devices of each tree, line by line.
func TestGolden(t *testing.T) {
	for _, name := range []string{"mi300x", "variants/mi300x-cpx", "mi210", "radeon", "variants/phoenix"} {
		t.Run(filepath.Base(name), func(t *testing.T) {
			var b strings.Builder
			for _, d := range sample(t, open(t, simtest.LoadTree(t, name))) {
				fmt.Fprintf(&b, "device %s parent=%q vendor=%q model=%q pci=%s kube=%v down=%q\n", d.ID, d.Parent, d.Vendor, d.Model, d.PCI, d.KubeIDs, d.Down)
				for _, r := range d.Readings {
					fmt.Fprintln(&b, r.Metric.Name, r.Labels, r.Value)
				}
			}
			golden.Compare(t, filepath.Join("testdata", filepath.Base(name)+".golden"), b.String())
		})
	}
}

// TestOpens: of a GPU only what the list names is opened; the trees forbid files
// that change something when they are read.
func TestOpens(t *testing.T) {
	if !faketree.CanMount() {
		t.Skip("needs a mounted tree")
	}
	for _, name := range []string{"mi300x", "mi210", "radeon"} {
		tree := simtest.LoadTree(t, name)
		s := open(t, tree)
		sample(t, s)
		if v := tree.Violations(); len(v) > 0 {
			t.Errorf("%s: %q", name, v)
		}
	}
}

// TestNarrowSlot: the slot is the slowest and narrowest link up to the root, not the
// switch on the card.
func TestNarrowSlot(t *testing.T) {
	tree := simtest.LoadTree(t, "radeon")
	tree.Set("bus/pci/devices/0000:60:01.1/max_link_speed", "8.0 GT/s PCIe\n")
	tree.Set("bus/pci/devices/0000:60:01.1/max_link_width", "8\n")
	d := sample(t, open(t, tree))[0]
	for _, c := range []struct {
		m    *collector.Metric
		of   string
		want float64
	}{{collector.PCIeGenerationMax, "slot", 3}, {collector.PCIeGenerationMax, "device", 4}, {collector.PCIeWidthMax, "slot", 8}, {collector.PCIeWidthMax, "device", 16}} {
		if got, ok := value(d, c.m, c.of); got != c.want || !ok {
			t.Errorf("%s of the %s is %v, %t; want %v", c.m.Name, c.of, got, ok, c.want)
		}
	}
}

// TestManyRetiredPages: the list of retired pages is longer than a page of a sysfs file.
func TestManyRetiredPages(t *testing.T) {
	tree := simtest.LoadTree(t, "mi210")
	tree.Set("bus/pci/devices/0000:c1:00.0/ras/gpu_vram_bad_pages", strings.Repeat("0x0000001f : 0x00001000 : R\n", 400)+"0x0000002f : 0x00001000 : P\n")
	d := sample(t, open(t, tree))[0]
	if n, _ := value(d, collector.RetiredPages, "unknown"); n != 400 {
		t.Errorf("%v retired pages, want 400", n)
	}
	if pending, _ := value(d, collector.RetiredPagesPending); pending != 1 {
		t.Error("the pending page is not seen")
	}
}

// TestNoSensor: a temperature that the firmware does not measure is absent, not 0.
func TestNoSensor(t *testing.T) {
	tree := simtest.LoadTree(t, "radeon")
	text := "#metrics\t1.3 temperature_edge=41 temperature_vrsoc=0\t/sys/bus/pci/devices/0000:63:00.0/gpu_metrics\n"
	if err := tree.Edit("edit", []byte(text)); err != nil {
		t.Fatal(err)
	}
	d := sample(t, open(t, tree))[0]
	if v, ok := value(d, collector.TemperatureCelsius, "gpu"); v != 41 || !ok {
		t.Errorf("the GPU has %v °C, known: %t", v, ok)
	}
	if v, ok := value(d, collector.TemperatureCelsius, "vrsoc"); ok {
		t.Errorf("vrsoc has %v °C", v)
	}
}

// TestLinkWithoutTable: without gpu_metrics the link is the slot's, not that of the switch on
// the card.
func TestLinkWithoutTable(t *testing.T) {
	tree := simtest.LoadTree(t, "radeon")
	tree.SetErr("bus/pci/devices/0000:63:00.0/gpu_metrics", syscall.EOPNOTSUPP)
	for _, end := range []string{"0000:60:01.1", "0000:61:00.0"} {
		tree.Set("bus/pci/devices/"+end+"/current_link_speed", "8.0 GT/s PCIe\n")
		tree.Set("bus/pci/devices/"+end+"/current_link_width", "8\n")
	}
	d := sample(t, open(t, tree))[0]
	if generation, ok := value(d, collector.PCIeGeneration); generation != 3 || !ok {
		t.Errorf("generation %v, %t; want 3", generation, ok)
	}
	if width, ok := value(d, collector.PCIeWidth); width != 8 || !ok {
		t.Errorf("%v lanes, %t; want 8", width, ok)
	}
}

// TestSleep: of a suspended GPU nothing is read that would wake it, and it is not
// down.
func TestSleep(t *testing.T) {
	const dir = "bus/pci/devices/0000:63:00.0/"
	tree := simtest.LoadTree(t, "radeon")
	tree.Set(dir+"power/runtime_status", "suspended\n")
	waking := []string{"gpu_metrics", "gpu_busy_percent", "pp_dpm_sclk", "pp_dpm_mclk", "max_link_speed", "current_link_speed", "pcie_replay_count", "hwmon/hwmon4/in0_input", "hwmon/hwmon4/temp1_input", "hwmon/hwmon4/power1_cap", "hwmon/hwmon4/temp1_crit"}
	s := open(t, tree)
	d := sample(t, s)[0]
	for _, f := range waking {
		if n := tree.Opens(dir + f); n > 0 {
			t.Errorf("%s was opened %d times", f, n)
		}
	}
	if _, ok := value(d, collector.MemoryTotal); !ok || d.Down != "" {
		t.Errorf("a sleeping GPU is %q, and its memory is known: %v", d.Down, ok)
	}
	if v, ok := value(d, collector.TemperatureCelsius, "gpu"); ok {
		t.Errorf("a sleeping GPU has %v °C", v)
	}
}

// TestIdleIsLeftAlone: an idle GPU that may be suspended is not read in each round, and
// answers.
func TestIdleIsLeftAlone(t *testing.T) {
	if !faketree.CanMount() {
		t.Skip("needs a mounted tree")
	}
	tree := simtest.LoadTree(t, "radeon")
	s := open(t, tree)
	var sampled time.Time
	for range 3 {
		d := sample(t, s)
		if len(d) != 1 || d[0].Down != "" || !d[0].Sampled.After(sampled) {
			t.Fatalf("%+v", d)
		}
		sampled = d[0].Sampled
	}
	if n := tree.Opens("bus/pci/devices/0000:63:00.0/gpu_metrics"); n != 1 {
		t.Errorf("gpu_metrics was opened %d times in three rounds, want once", n)
	}
}

// TestThrottle: residencies become time, whether or not a counter of 32 bits wraps.
func TestThrottle(t *testing.T) {
	const file = "/sys/bus/pci/devices/0000:05:00.0/gpu_metrics"
	tree := simtest.LoadTree(t, "mi300x")
	edit := func(samples, throttled uint32) {
		text := fmt.Sprintf("#metrics\t1.8 average_gfx_activity=1 accumulation_counter=%d ppt_residency_acc=%d prochot_residency_acc=5\t%s\n", samples, throttled, file)
		if err := tree.Edit("edit", []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if !faketree.CanMount() {
		t.Skip("needs a mounted tree")
	}
	edit(1<<32-100, 1<<32-50)
	s := open(t, tree)
	if v, ok := value(sample(t, s)[0], collector.ThrottleSeconds, "sw_power_cap"); v != 0 || !ok {
		t.Errorf("first read: %v s (present: %v), want 0", v, ok)
	}
	edit(900, 950) // 1000 samples, all of them throttled
	d := sample(t, s)[0]
	if v, _ := value(d, collector.ThrottleSeconds, "sw_power_cap"); v <= 0 {
		t.Errorf("%v s, want the time between the reads", v)
	}
	if v, _ := value(d, collector.ThrottleSeconds, "hw_thermal"); v != 0 {
		t.Errorf("hw_thermal is %v s, want 0", v)
	}
}

// TestUnknownVersion: an unknown version is counted once, and single attributes are
// read instead.
func TestUnknownVersion(t *testing.T) {
	tree := simtest.LoadTree(t, "mi210")
	tree.Set("bus/pci/devices/0000:c1:00.0/gpu_metrics", "\x78\x00\x01\x63"+strings.Repeat("\x01", 116))
	s := open(t, tree)
	d := sample(t, s)[0]
	if len(d.Rejects) != 1 || d.Rejects[0].Reason != collector.RejectVersion {
		t.Errorf("rejects %v, want one of the version", d.Rejects)
	}
	if v, _ := value(d, collector.UtilizationRatio, "compute"); v != 0.88 || d.Down != "" {
		t.Errorf("compute is %v, %q; want 0.88 of gpu_busy_percent", v, d.Down)
	}
	if v, _ := value(d, collector.PowerWatts); v != 242 {
		t.Errorf("%v W, want 242 of power1_average", v)
	}
	if d := sample(t, s)[0]; len(d.Rejects) != 0 {
		t.Errorf("counted again: %v", d.Rejects)
	}
}

// TestVirtualFunction: a GPU with nothing that could answer is up with what the driver keeps.
func TestVirtualFunction(t *testing.T) {
	tree := simtest.LoadTree(t, "mi300x")
	for _, f := range []string{"gpu_metrics", "gpu_busy_percent", "mem_busy_percent", "hwmon", "pcie_replay_count"} {
		tree.Remove("/sys/bus/pci/devices/0000:05:00.0/" + f)
	}
	d := sample(t, open(t, tree))[0]
	if v, ok := value(d, collector.MemoryTotal); !ok || v == 0 || d.Down != "" {
		t.Errorf("memory %v (there: %t), %q", v, ok, d.Down)
	}
}

// TestFailing: a GPU whose table cannot be read is down, and a vanished one is gone.
func TestFailing(t *testing.T) {
	if !faketree.CanMount() {
		t.Skip("needs a mounted tree")
	}
	const dir = "bus/pci/devices/0000:05:00.0/"
	tree := simtest.LoadTree(t, "mi300x")
	s := open(t, tree)
	sample(t, s)
	tree.SetErr(dir+"gpu_metrics", syscall.EBUSY)
	for _, f := range []string{"gpu_busy_percent", "mem_busy_percent", "hwmon/hwmon3/temp2_input", "hwmon/hwmon3/temp3_input"} {
		tree.SetErr(dir+f, syscall.EBUSY)
	}
	if d := sample(t, s); d[0].Down != collector.ReasonError {
		t.Errorf("a GPU in reset is %q", d[0].Down)
	}
	tree.Unplug("/sys/" + strings.TrimSuffix(dir, "/"))
	if d := sample(t, s); len(d) != 0 {
		t.Errorf("a GPU that left the bus: %+v", d)
	}
}
