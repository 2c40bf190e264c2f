package pcie_test

import (
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/collector/pcie"
	"github.com/accel-exporter/accel-exporter/collector/sysfs"
	"github.com/accel-exporter/accel-exporter/internal/sim/faketree"
)

// Functions of testdata/trees/bus.txt.
const (
	gpu      = "0000:18:00.0" // behind a switch
	dead     = "0000:19:00.0"
	oldGPU   = "0000:38:00.0"
	sleeping = "0000:58:00.0"
)

// at is the path of a file of a function.
func at(address, file string) string { return path.Join("/sys/bus/pci/devices", address, file) }

func TestAbsent(t *testing.T) {
	empty := faketree.New()
	empty.Mkdir("/sys/bus/pci/devices")
	none := load(t, "zynqmp-fpga-manager")
	for name, tree := range map[string]*faketree.Tree{"no bus": none, "no accelerator": empty} {
		t.Run(name, func(t *testing.T) {
			s := open(t, write(t, tree), pcie.Options{})
			if round, err := sampleFor(s, time.Minute); !errors.Is(err, collector.ErrAbsent) || len(round.Devices) > 0 {
				t.Errorf("%v, %v; want ErrAbsent", round, err)
			}
		})
	}
}

// TestNothingElseIsOpened: over all trees, again and again, only files of the
// list below are opened, and nothing is written.
func TestNothingElseIsOpened(t *testing.T) {
	allowed := []string{
		"class", "vendor", "device", "subsystem_vendor", "subsystem_device", "revision", "numa_node",
		"power_state", "runtime_status", "aer_dev_correctable", "aer_dev_nonfatal", "aer_dev_fatal",
		"aer_rootport_total_err_cor", "aer_rootport_total_err_nonfatal", "aer_rootport_total_err_fatal",
		"current_link_speed", "current_link_width", "max_link_speed", "max_link_width",
		"information", "params", // of NVIDIA's driver in procfs
	}
	for _, name := range trees {
		t.Run(name, func(t *testing.T) {
			tree := load(t, name)
			s := open(t, mount(t, tree), pcie.Options{Dev: t.TempDir()})
			for range 3 {
				sample(t, s)
			}
			for _, p := range tree.Opened() {
				if p != "/sys/bus/pci/devices" && p != "/proc/devices" && !slices.Contains(allowed, path.Base(p)) {
					t.Errorf("%s was opened", p)
				}
			}
			if v := tree.Violations(); len(v) > 0 {
				t.Error(v)
			}
		})
	}
}

// TestSleepersAreNotWoken: configuration space is not read of a function that
// is asleep or may be.
func TestSleepersAreNotWoken(t *testing.T) {
	hardware := []string{"current_link_speed", "current_link_width", "max_link_speed", "max_link_width"}
	for _, c := range []struct {
		state, status string // empty: there is no such file
		awake         bool
	}{
		{"D0", "active", true},
		{"unknown", "active", true}, // no driver
		{"", "active", true},        // before Linux 5.12
		{"D0", "unsupported", true},
		{"D0", "error", true},
		{"D0", "", true}, // a kernel without power management
		{"D3cold", "suspended", false},
		{"D3hot", "suspended", false},
		{"D0", "suspended", false}, // no driver: the port above may have cut the power
		{"D0", "suspending", false},
		{"D3cold", "resuming", false},
		{"D3cold", "active", false},
		{"D3hot", "unsupported", false},
		{"", "", false},
		{"D0", "dozing", false},
		{"garbage", "unsupported", false},
	} {
		t.Run(c.state+" "+c.status, func(t *testing.T) {
			tree := load(t, "bus")
			for file, text := range map[string]string{"power_state": c.state, "power/runtime_status": c.status} {
				if text == "" {
					tree.Remove(at(sleeping, file))
				} else {
					tree.Set(at(sleeping, file), text+"\n")
				}
			}
			s := open(t, mount(t, tree), pcie.Options{})
			round := sample(t, s)
			for _, file := range hardware {
				if n := tree.Opens(at(sleeping, file)); (n > 0) != c.awake {
					t.Errorf("%s: opened %d times", file, n)
				}
				if n := tree.Opens(at("0000:57:01.0", file)); n > 0 {
					t.Errorf("%s of the port, which sleeps: opened %d times", file, n)
				}
			}
			if n := tree.Opens("/proc/driver/nvidia/gpus/" + sleeping + "/information"); (n > 0) != c.awake {
				t.Errorf("information: opened %d times", n)
			}
			d := device(round, sleeping)
			if _, ok := value(d, collector.PCIeLinkWidth, sleeping); ok != c.awake {
				t.Errorf("link: %v", ok)
			}
			// The counts of errors are in memory.
			want(t, d, 0, collector.AERReports, sleeping)
			if d == nil || d.Down != "" {
				t.Errorf("%+v", d)
			}
		})
	}
}

// TestReads: a function, also a port shared by several cards, takes one read(2) per
// attribute that changes, and none in the rounds until it is due.
func TestReads(t *testing.T) {
	tree := load(t, "bus")
	s := open(t, mount(t, tree), pcie.Options{})
	sample(t, s)
	tree.Forget()
	sample(t, s)
	changing := []string{
		"power_state", "power/runtime_status", "current_link_width", "current_link_speed",
		"aer_dev_correctable", "aer_dev_nonfatal", "aer_dev_fatal",
	}
	for _, function := range []string{gpu, "0000:17:00.0", "0000:16:00.0", "0000:15:01.0"} {
		// The round does not wait for a function that is late.
		last := at(function, changing[len(changing)-1])
		for begin := time.Now(); tree.Reads(last) == 0 && time.Since(begin) < time.Minute; {
			time.Sleep(time.Millisecond)
		}
		for _, file := range changing {
			if n := tree.Reads(at(function, file)); n != 1 {
				t.Errorf("%s of %s: %d reads", file, function, n)
			}
		}
	}
	defer func(d time.Duration) { *pcie.ReadEvery = d }(*pcie.ReadEvery)
	*pcie.ReadEvery = time.Hour
	last := sample(t, s) // with functions that were late
	for again := sample(t, s); !reflect.DeepEqual(again, last); again = sample(t, s) {
		last = again
	}
	tree.Forget()
	want(t, device(sample(t, s), gpu), 16, collector.PCIeLinkWidth, gpu)
	for _, p := range tree.Opened() {
		if p != "/sys/bus/pci/devices" {
			t.Errorf("%s: opened before it is due", p)
		}
	}
}

// TestHangs: a function whose read does not return does not respond and is not
// read again; all others are.
func TestHangs(t *testing.T) {
	tree := load(t, "bus")
	dir := mount(t, tree)
	file := at(gpu, "current_link_width")
	release := tree.Block(file)
	defer release()
	s := pcie.New(sysfs.New(filepath.Join(dir, "sys")), sysfs.New(filepath.Join(dir, "proc")), pcie.Options{})

	// The round ends early: here as soon as the read hangs. The remaining
	// results arrive in one of the next rounds.
	await := time.Now().Add(2 * time.Minute)
	for others := false; !others; {
		if time.Now().After(await) {
			t.Fatal("the other functions do not answer")
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
		go func() {
			for tree.Reads(file) == 0 && ctx.Err() == nil {
				time.Sleep(time.Millisecond)
			}
			cancel()
		}()
		round, err := s.Sample(ctx)
		cancel()
		if err == nil || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), gpu) {
			t.Fatalf("error %v", err)
		}
		d := device(round, gpu)
		if d == nil || d.Down != "" || !d.Sampled.IsZero() {
			t.Fatalf("%+v", d)
		}
		want(t, d, 0, collector.PCIeResponding, gpu)
		others = !slices.ContainsFunc(round.Devices, func(d collector.Device) bool { return d.ID != gpu && d.ID != dead && !answers(&d) })
		if _, ok := value(device(round, gpu), collector.PCIeLinkWidth, "0000:17:00.0"); !ok {
			others = false
		}
	}
	if n := tree.Reads(file); n != 1 {
		t.Errorf("%d reads of a file that hangs", n)
	}

	release()
	for d := (*collector.Device)(nil); d == nil || !answers(d); {
		if time.Now().After(await) {
			t.Fatal("does not come back")
		}
		round, _ := sampleFor(s, 2*time.Minute) // an error while it is not back
		d = device(round, gpu)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestLimit: more functions than can be are an error, not more goroutines.
func TestLimit(t *testing.T) {
	tree := faketree.New()
	for i := range 520 {
		dir := fmt.Sprintf("/sys/devices/pci%04x:00/%04x:00:00.0", i, i)
		for file, text := range map[string]string{"class": "0x030200", "vendor": "0x10de", "device": "0x2330", "power_state": "D0"} {
			tree.Set(dir+"/"+file, text+"\n")
		}
		tree.Link(fmt.Sprintf("/sys/bus/pci/devices/%04x:00:00.0", i), "../../.."+strings.TrimPrefix(dir, "/sys"))
	}
	s := open(t, write(t, tree), pcie.Options{})
	for range 2 {
		round, err := sampleFor(s, 2*time.Minute)
		if err == nil || !strings.Contains(err.Error(), "0200:00:00.0 and further") || len(round.Devices) != 512 {
			t.Errorf("%d devices, %v", len(round.Devices), err)
		}
	}
}
