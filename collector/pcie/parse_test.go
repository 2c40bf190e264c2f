package pcie

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/accel-exporter/accel-exporter/collector/sysfs"
)

// TestTrap08: kernels print the names of errors in two forms, of which one has
// blanks.
func TestTrap08(t *testing.T) {
	for _, c := range []struct {
		file, short, long string
		want              []string
	}{
		{
			"correctable",
			"RxErr 0\nBadTLP 1\nBadDLLP 2\nRollover 3\nTimeout 4\nNonFatalErr 5\nCorrIntErr 6\nHeaderOF 7\nTOTAL_ERR_COR 20\n",
			"Receiver Error 0\nBad TLP 1\nBad DLLP 2\nRELAY_NUM Rollover 3\nReplay Timer Timeout 4\nAdvisory Non-Fatal 5\nCorrected Internal Error 6\nHeader Log Overflow 7\nTOTAL_ERR_COR 20\n",
			[]string{"receiver", "bad_tlp", "bad_dllp", "replay_rollover", "replay_timeout", "advisory_nonfatal", "corrected_internal", "header_log_overflow"},
		},
		{
			"fatal",
			"Undefined 0\nDLP 1\nSDES 2\nTLP 3\nFCP 4\nCmpltTO 5\nCmpltAbrt 6\nUnxCmplt 7\nRxOF 8\nMalfTLP 9\nECRC 10\nUnsupReq 11\nACSViol 12\nUncorrIntErr 13\nBlockedTLP 14\nAtomicOpBlocked 15\nTLPBlockedErr 16\nTOTAL_ERR_FATAL 20\n",
			"Undefined 0\nData Link Protocol 1\nSurprise Down Error 2\nPoisoned TLP 3\nFlow Control Protocol 4\nCompletion Timeout 5\nCompleter Abort 6\nUnexpected Completion 7\nReceiver Overflow 8\nMalformed TLP 9\nECRC 10\nUnsupported Request 11\nACS Violation 12\nUncorrectable Internal Error 13\nMC Blocked TLP 14\nAtomicOp Egress Blocked 15\nTLP Prefix Blocked Error 16\nTOTAL_ERR_FATAL 20\n",
			[]string{"undefined", "data_link_protocol", "surprise_down", "poisoned_tlp", "flow_control_protocol", "completion_timeout", "completer_abort", "unexpected_completion", "receiver_overflow", "malformed_tlp", "ecrc", "unsupported_request", "acs_violation", "uncorrectable_internal", "mc_blocked_tlp", "atomicop_blocked", "tlp_prefix_blocked"},
		},
	} {
		want := report{total: 20, counted: true}
		for i, name := range c.want {
			want.counts = append(want.counts, count{name, uint64(i)})
		}
		for spelling, text := range map[string]string{"short": c.short, "long": c.long} {
			if diff := cmp.Diff(want, parseAER(text), cmp.AllowUnexported(report{}, count{})); diff != "" {
				t.Errorf("%s, %s names (-want +got):\n%s", c.file, spelling, diff)
			}
		}
	}
}

func TestParseAER(t *testing.T) {
	for _, c := range []struct {
		text string
		want report
	}{
		{"", report{}},
		{"RxErr 3\ndev_cor_errs_bit[9] 2\ndev_cor_errs_bit[1] 1\nTOTAL_ERR_COR 6\n", report{counts: []count{{"receiver", 3}, {"other", 3}}, total: 6, counted: true}},
		{"RxErr 18446744073709551615\n", report{counts: []count{{"receiver", math.MaxUint64}}}},
		{"RxErr 18446744073709551616\n", report{garbled: true}},
		{"RxErr -1\nRxErr\n7\n 7\nRxErr x\n", report{garbled: true}},
		{"RxErr 1\nReceiver Error 2\n", report{counts: []count{{"receiver", 1}}, garbled: true}},
		{"New 18446744073709551615\nNewer 1\n", report{counts: []count{{"other", math.MaxUint64}}, garbled: true}},
	} {
		if diff := cmp.Diff(c.want, parseAER(c.text), cmp.AllowUnexported(report{}, count{})); diff != "" {
			t.Errorf("%q (-want +got):\n%s", c.text, diff)
		}
	}
}

func TestParseSpeed(t *testing.T) {
	for text, want := range map[string]float64{
		"2.5 GT/s PCIe": 2.5e9, "5.0 GT/s PCIe": 5e9, "8.0 GT/s PCIe": 8e9, "16.0 GT/s PCIe": 16e9, "32.0 GT/s PCIe": 32e9, "64.0 GT/s PCIe": 64e9, "128.0 GT/s PCIe": 128e9,
		"2.5 GT/s": 2.5e9, "8 GT/s": 8e9, "16 GT/s": 16e9,
		"Unknown": 0, "Unknown speed": 0,
		"": -1, "8.0": -1, "8.0 Gb/s": -1, "8.05 GT/s": -1, "-8 GT/s": -1, "0 GT/s": -1, "1e9 GT/s": -1, "133 MHz PCI-X": -1, "99999 GT/s": -1,
	} {
		got := parseSpeed(text)
		if want > 0 && got.value != want || want == 0 && got != unknown || want < 0 && got != garbled {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// FuzzAER: no text yields an unknown name, a name twice, or a number that is
// not in it.
func FuzzAER(f *testing.F) {
	for _, seed := range []string{
		"", "RxErr 1\nTOTAL_ERR_COR 1\n", "Receiver Error 2\n", "dev_cor_errs_bit[1] 3\nNew One 4\n", "RxErr\n 5\n", "RxErr 18446744073709551615\n", "\x00 1\n",
	} {
		f.Add(seed)
	}
	names := map[string]bool{otherError: true}
	for _, name := range errorNames {
		names[name] = true
	}
	f.Fuzz(func(t *testing.T, text string) {
		r := parseAER(text)
		seen := map[string]bool{}
		for _, c := range r.counts {
			if !names[c.name] || seen[c.name] {
				t.Errorf("%q", c.name)
			}
			seen[c.name] = true
			if c.name != otherError && !strings.Contains(text, fmt.Sprint(c.n)) {
				t.Errorf("%s: %d does not stand there", c.name, c.n)
			}
		}
		if r.counted && !strings.Contains(text, fmt.Sprint(r.total)) {
			t.Errorf("total: %d does not stand there", r.total)
		}
	})
}

// FuzzSpeed: a speed is a positive multiple of a tenth of a GT/s, and parses
// the same in the kernel's format.
func FuzzSpeed(f *testing.F) {
	for _, seed := range []string{"8.0 GT/s PCIe", "2.5 GT/s", "16 GT/s", "Unknown", "Unknown speed", "1e3 GT/s", "+8 GT/s", "8.x GT/s"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n := parseSpeed(text)
		if (n.value > 0) == (n.reject != "") {
			t.Errorf("%v", n)
		}
		if n.value > 0 {
			again := parseSpeed(fmt.Sprintf("%.1f GT/s PCIe", n.value/1e9))
			if again != n || n.value < 1e8 || n.value > 1e13 {
				t.Errorf("%v, then %v", n, again)
			}
		}
	})
}

// FuzzID: a PCI id has the form that the kernel prints, and within its bits.
func FuzzID(f *testing.F) {
	for _, seed := range []string{"0x120000", "0x10de", "0xffffff", "0x1000000", "10de", "0x", "0x-1", "0X10de", "0x10DE"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, bits := range []int{16, 24} {
			n, ok := parseID(text, bits)
			if !ok {
				continue
			}
			if n >= 1<<bits || fmt.Sprintf("0x%x", n) != "0x"+strings.TrimLeft(text[2:], "0") && n != 0 {
				t.Errorf("%d bits: %#x", bits, n)
			}
		}
	})
}

// FuzzEnds: the path begins with the function and contains addresses.
func FuzzEnds(f *testing.F) {
	f.Add("devices/pci0000:17/0000:17:00.0/0000:18:00.0/0000:1b:00.0", "0000:1b:00.0")
	f.Add("devices/pci0000:00/0000:00:02.0", "0000:00:02.0")
	f.Add("", "")
	f.Fuzz(func(t *testing.T, path, address string) {
		up := ends(path, address)
		if len(up) == 0 || len(up) > maxDepth || up[0] != address || slices.ContainsFunc(up[1:], func(s string) bool { return !sysfs.PCIAddress(s) }) {
			t.Errorf("%q", up)
		}
	})
}

// FuzzDriverTexts: texts of NVIDIA's driver and of the kernel never yield a
// number beyond the kernel's, nor a UUID or a name of another form.
func FuzzDriverTexts(f *testing.F) {
	f.Add("Model: \t\t H100\nGPU UUID: \t GPU-11114707-9d28-0ab5-175a-3cf7e5e24303\nDevice Minor: \t 0\n")
	f.Add("Model: \t\t Unknown\nGPU UUID: \t GPU-????????-????-????-????-????????????\nDevice Minor: \t 4294967295\n")
	f.Add("DeviceFileUID: 0\nDeviceFileGID: 44\nDeviceFileMode: 432\nModifyDeviceFiles: 1\n")
	f.Fuzz(func(t *testing.T, text string) {
		in := parseInformation(text)
		if n, err := strconv.ParseUint(in.minor, 10, minorBits); in.minor != "" && (err != nil || fmt.Sprint(n) != in.minor) {
			t.Errorf("minor %s", in.minor)
		}
		if in.uuid != "" && (len(in.uuid) != len("GPU-11114707-9d28-0ab5-175a-3cf7e5e24303") || strings.Contains(in.uuid, "?") || !strings.Contains(text, in.uuid)) {
			t.Errorf("UUID %q", in.uuid)
		}
		if len(in.model) > maxModel || !utf8.ValidString(in.model) || strings.ContainsAny(in.model, "\n\x00") {
			t.Errorf("model %q", in.model)
		}
		if a := parseParams(text); a != nil && !strings.Contains(text, "DeviceFileMode") {
			t.Errorf("%+v", a)
		}
	})
}
