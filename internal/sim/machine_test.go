package sim

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
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

// kernelLog returns the text of the records and checks that their numbers are
// consecutive.
func kernelLog(t *testing.T, state string) []string {
	t.Helper()
	data, err := os.ReadFile(KernelLog(state))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for line := range strings.Lines(string(data)) {
		head, text, ok := strings.Cut(strings.TrimSuffix(line, "\n"), ";")
		fields := strings.Split(head, ",")
		if !ok || len(fields) != 4 || fields[1] != strconv.Itoa(len(out)) {
			t.Errorf("record %d is %q", len(out), line)
		}
		out = append(out, text)
	}
	return out
}

// The bus and /proc show the GPUs that NVML shows, at the same addresses.
func TestMachineShowsTheGPUs(t *testing.T) {
	names := ScenarioNames(fixtures)
	if len(names) < 12 {
		t.Fatalf("found %d scenarios", len(names))
	}
	for _, scenario := range names {
		s := compiled(t, scenario)
		tree := s.tree
		for i := range s.gpus() {
			at := "/sys/bus/pci/devices/" + s.address(i)
			for file, want := range map[string]string{"vendor": "0x10de\n", "class": "0x030200\n", "numa_node": "0\n", "power_state": "D0\n"} {
				if got, _ := tree.Get(at + "/" + file); got != want {
					t.Errorf("%s: GPU %d: %s is %q, want %q", scenario, i, file, got, want)
				}
			}
			if got, _ := tree.Get(at + "/max_link_speed"); !slices.Contains(linkSpeeds[1:], strings.TrimSpace(got)) {
				t.Errorf("%s: GPU %d has no link speed", scenario, i)
			}
			_, bound := tree.Target(at + "/driver")
			if bound != (s.Get("driver.state") != "unloaded") {
				t.Errorf("%s: GPU %d: bound is %t", scenario, i, bound)
			}
			info, _ := tree.Get("/proc/driver/nvidia/gpus/" + s.address(i) + "/information")
			if bound && !strings.Contains(info, "GPU UUID: \t "+s.gpuGet(i, "uuid")+"\n") && !strings.HasPrefix(s.gpuGet(i, "uuid"), "error:") {
				t.Errorf("%s: GPU %d: /proc says %q", scenario, i, info)
			}
		}
		for _, name := range tree.Paths() {
			if _, isLink := tree.Target(name); isLink && !tree.Exists(name) && filepath.Base(name) != "driver" && name != "/proc/self/ns/pid" {
				t.Errorf("%s: %s leads nowhere", scenario, name)
			}
		}
	}
}

func TestMixedNode(t *testing.T) {
	state, _ := installed(t, "mixed-node")
	s := stateOf(t, state)
	for arg, want := range map[string]string{
		"0": "0000:1b:00.0", "n6001": "0000:b1:00.0", "5e:00.1": "0000:5e:00.1", "zynqmp": "firmware:zynqmp-firmware:pcap", "3": "firmware:zynqmp-firmware:pcap",
	} {
		if c, _, err := s.card(arg); c.at != want {
			t.Errorf("card %s is at %q, %v; want %s", arg, c.at, err, want)
		}
	}
	if _, _, err := s.card("intel"); err == nil || !strings.Contains(err.Error(), `2 cards are "intel"`) || !strings.Contains(err.Error(), "\n  1  intel-n6001-ofs  0000:b1:00.0\n") {
		t.Errorf("two cards of one name: %v", err)
	}
	if got := kernelLog(t, state); len(got) != 1 || !strings.HasPrefix(got[0], "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  580.105.08  ") {
		t.Errorf("the kernel logged %q", got)
	}
}

// Each fault of NVML that the kernel would log is logged; the last line is.
func TestKernelLogsFaults(t *testing.T) {
	state, _ := installed(t, "h100-8")
	for _, tc := range [][2]string{
		{"xid 79 1", "NVRM: Xid (PCI:0000:64:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."},
		{"xid 31 0", "NVRM: Xid (PCI:0000:53:00): 31, pid=21001, name=python3, " + xidWords[31].words},
		{"xid 119 2", "NVRM: Xid (PCI:0000:75:00): 119, pid=21021, name=python3, Timeout after 6s of waiting for RPC response from GPU2 GSP! Expected function 103 (GSP_RM_ALLOC) (0x2081 0x4)."},
		{"xid 94 4/1", "NVRM: Xid (PCI:0000:97:00 GPU-I:03 GPU-CI:00): 94, pid=41001, name=python3, Contained: SM (0x1). RST: No, D-RST: No"},
		{"xid 171 7", "NVRM: Xid (PCI:0000:ca:00): 171, pid='<unknown>', name=<unknown>, unknown error"},
		{"recovery-action reset 3", "NVRM: Xid (PCI:0000:86:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)"},
		{"lost 3", "NVRM: GPU 0000:86:00.0: GPU has fallen off the bus."},
		{"driver-reload --driver=590.48.01", "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  590.48.01  Wed Oct 29 23:15:11 UTC 2025"},
		{"kernel-log NVRM: a  line of words", "NVRM: a line of words"},
		{"kernel-log eth0:\x01down\\", `eth0:\x01down\x5c`},
		{"aer 3 fatal", "nvidia 0000:86:00.0:    [ 4] DLP                    (First)"},
		{"xid 79 1 --no-log", ""},
		{"lost 1 --no-log", ""},
		{"set temperature 90 0", ""},
		{"bus-loss 3", "NVRM: GPU 0000:86:00.0: GPU has fallen off the bus."},
	} {
		words, want := tc[0], tc[1]
		before := len(kernelLog(t, state))
		strike(t, state, words)
		after := kernelLog(t, state)
		got := ""
		if len(after) > before {
			got = after[len(after)-1]
		}
		if got != want {
			t.Errorf("%s: %q, want %q", words, got, want)
		}
	}
}

func TestBusFaults(t *testing.T) {
	state, sys := installed(t, "mixed-node")
	strike(t, state, "aer 0 nonfatal --count=3")
	strike(t, state, "aer 1b:00.0 correctable --name=BadTLP")
	strike(t, state, "link-degraded GPU-"+strings.TrimPrefix(stateOf(t, state).Get("gpu.1.uuid"), "GPU-")+" --width=8 --speed=3")
	for name, want := range map[string]string{
		"bus/pci/devices/0000:52:01.0/aer_rootport_total_err_nonfatal": "3",
		"bus/pci/devices/0000:64:00.0/current_link_width":              "8",
		"bus/pci/devices/0000:63:01.0/current_link_width":              "8",
		"bus/pci/devices/0000:64:00.0/current_link_speed":              "8.0 GT/s PCIe",
		"bus/pci/devices/0000:64:00.0/max_link_speed":                  "32.0 GT/s PCIe",
	} {
		if got := attribute(t, sys, name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	for name, lines := range map[string][]string{
		"bus/pci/devices/0000:53:00.0/aer_dev_nonfatal":    {"CmpltTO 3", "TOTAL_ERR_NONFATAL 3", "RxOF 0"},
		"bus/pci/devices/0000:1b:00.0/aer_dev_correctable": {"BadTLP 1", "TOTAL_ERR_COR 1", "RxErr 0"},
	} {
		text := strings.Split(attribute(t, sys, name), "\n")
		for _, line := range lines {
			if !slices.Contains(text, line) {
				t.Errorf("%s: %q without %q", name, text, line)
			}
		}
	}
	if got := stateOf(t, state).last(device{1, -1}, "pcie.width"); got != "8" {
		t.Errorf("NVML has a width of %s", got)
	}
	strike(t, state, "lost 1")
	if got := attribute(t, sys, "bus/pci/devices/0000:64:00.0/current_link_width"); got != "63" {
		t.Errorf("a GPU that does not answer has %s lanes", got)
	}
	strike(t, state, "bus-loss 0")
	strike(t, state, "bus-loss n3000")
	for _, at := range []string{"bus/pci/devices/0000:53:00.0", "bus/pci/drivers/nvidia/0000:53:00.0", "bus/pci/devices/0000:1b:00.0", "class/fpga_manager/fpga0"} {
		if sys.Exists(at) {
			t.Errorf("%s is still there", at)
		}
	}
	if !sys.Exists("bus/pci/devices/0000:52:01.0") || stateOf(t, state).Get("gpu.0.lost") != "1" {
		t.Error("the port went too, or NVML still has the GPU")
	}
	refused(t, state, map[string]string{
		"aer 0000:53:00.0 fatal": `nothing on the bus is "0000:53:00.0"; it has 0000:17:00.0, `,
		"fpga-reconfigure n3000": "cards are:\n  0  intel-n3000-dfl  0000:1b:00.0  (gone)\n",
	})
}

func stateOf(t *testing.T, path string) *State {
	t.Helper()
	s, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	return s
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
	refused(t, state, map[string]string{"clear nothing": `no device "nothing"`})
}

// A driver that is loaded is the installed one, which an upgrade changes.
func TestDriverGoesAndComes(t *testing.T) {
	state, sys := installed(t, "h100-8")
	for _, tc := range []struct{ words, version string }{ // "": not loaded
		{"driver-unload", ""},
		{"driver-reload --driver=590.48.01", "590.48.01"},
		{"driver-reload", "590.48.01"},
		{"driver-mismatch", "590.48.01"},
		{"driver-reload", "610.43.02"},
		{"driver-reload --driver=590.48.01", "590.48.01"},
		{"driver-mismatch", "590.48.01"},
		{"driver-unload", ""},
		{"driver-reload", "610.43.02"},
		{"clear all", "580.105.08"},
	} {
		strike(t, state, tc.words)
		version, _ := sys.Read("module/nvidia/version")
		driver, _ := sys.Link("bus/pci/devices/0000:53:00.0/driver")
		if version != tc.version || (driver == "nvidia") != (tc.version != "") || !sys.Exists("bus/pci/devices/0000:53:00.0") {
			t.Errorf("%s: the driver is %q of version %q, want %q", tc.words, driver, version, tc.version)
		}
	}
	if got := stateOf(t, state).Get("driver.nvml"); got != "13.580.105.08" {
		t.Errorf("clear leaves the library %s", got)
	}
	strike(t, state, "gone 3")
	if sys.Exists("bus/pci/drivers/nvidia/0000:86:00.0") {
		t.Error("a GPU that is not enumerated is bound")
	}
}
