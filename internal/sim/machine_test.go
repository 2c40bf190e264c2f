package sim

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/accel-exporter/accel-exporter/collector/sysfs"
)

// installed sets a scenario up and returns its state file and its /sys.
func installed(t *testing.T, scenario string) (state string, sys sysfs.FS) {
	t.Helper()
	state = filepath.Join(t.TempDir(), "state")
	if err := compiled(t, scenario).Install(state); err != nil {
		t.Fatal(err)
	}
	return state, sysfs.New(filepath.Join(Root(state), "sys"))
}

// inject applies a fault, or "clear" and a device, or all.
func inject(state, words string) error {
	return Update(state, func(s *State) error {
		if device, ok := strings.CutPrefix(words, "clear "); ok {
			return s.Clear(device)
		}
		return s.Inject(strings.Fields(words))
	})
}

func strike(t *testing.T, state, words string) {
	t.Helper()
	if err := inject(state, words); err != nil {
		t.Fatalf("%s: %v", words, err)
	}
}

func attribute(t *testing.T, sys sysfs.FS, name string) string {
	t.Helper()
	text, err := sys.Read(name)
	if err != nil {
		t.Error(err)
	}
	return text
}

// Clear restores one device, or all, to the start of the scenario.
func TestClearMendsTheMachine(t *testing.T) {
	state, sys := installed(t, "mixed-node")
	intact, err := os.ReadFile(TreeFile(state))
	if err != nil {
		t.Fatal(err)
	}
	faults := []string{
		"bus-loss 0", "aer 1 fatal", "fpga-error n3000 0x81", "fpga-temperature u250 91", "fpga-firewall u250",
		"fpga-reconfigure zynqmp --fail", "fpga-reconfigure u250", "bus-loss n6001", "link-degraded n3000",
	}
	for _, clear := range [][]string{{"all"}, {"0", "1", "n3000", "0000:b1:00.0", "u250", "firmware:zynqmp-firmware:pcap"}} {
		for _, words := range faults {
			strike(t, state, words)
		}
		for _, what := range clear {
			strike(t, state, "clear "+what)
		}
		now, err := os.ReadFile(TreeFile(state))
		if err != nil {
			t.Fatal(err)
		}
		// The port above a card is not part of the card.
		if clear[0] == "all" {
			if d := cmp.Diff(string(intact), string(now)); d != "" {
				t.Errorf("clear %v: %s", clear, d)
			}
		}
		if !sys.Exists("bus/pci/devices/0000:53:00.0/driver") || !sys.Exists("class/hwmon/hwmon4") || attribute(t, sys, "bus/pci/devices/0000:5e:00.1/xclbinuuid") != "2a44fc56-4eba-430c-95a4-13fa87dee9cc" {
			t.Errorf("clear %v leaves something broken", clear)
		}
	}
	if err := inject(state, "clear nothing"); err == nil || !strings.Contains(err.Error(), `no device "nothing"`) {
		t.Errorf("a device that does not exist is cleared: %v", err)
	}
}

// TestAMDCounters: an error of an AMD GPU is in the file of its block, in the layout that
// the driver has for the GPU.
func TestAMDCounters(t *testing.T) {
	for scenario, c := range map[string]struct{ words, file, want string }{
		"mi300x-8":   {"amd-ecc uncorrected 1 --block=gfx --count=2", "ras/aca_gfx", "ue: 2\nce: 0\nde: 0"},
		"mi300x-cpx": {"amd-ecc deferred 1 --no-log", "ras/aca_umc", "ue: 0\nce: 0\nde: 1"},
		"mi210":      {"amd-ecc corrected 1", "ras/umc_err_count", "ue: 0\nce: 2"},
	} {
		state, sys := installed(t, scenario)
		strike(t, state, c.words)
		s, err := Read(state)
		if err != nil {
			t.Fatal(err)
		}
		if got := attribute(t, sys, "bus/pci/devices/"+attr(s.Get("card.1"), "at")+"/"+c.file); got != c.want {
			t.Errorf("%s: %s: %q, want %q", scenario, c.words, got, c.want)
		}
	}
}
