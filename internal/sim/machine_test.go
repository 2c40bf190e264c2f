package sim

import (
	"os"
	"path/filepath"
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
