package fpga

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

const cuStat = "Pending queue:    1\nRunning queue:    2\nSubmitted queue:  3\nCompleted queue:  4\nBad state:        0\n" +
	"Current credit:   1\nCU status:        0x4\nsleep cnt:        0\nmax running:      1\n\x00"

// results are what a parser returns.
func results(values ...any) []any { return values }

// TestParsers: the texts of XRT's files, in the form of each release, and garbled ones.
func TestParsers(t *testing.T) {
	const a, b = "2a44fc56-4eba-430c-95a4-13fa87dee9cc", "00c4f3f5-fb4f-5ac7-0bd9-3a1e1c1f0a11"
	var noUUIDs []string
	units := func(list ...computeUnit) []any { return results(list) }
	noBanks := results([]memBank(nil), false)
	for _, c := range []struct {
		name      string
		got, want []any
	}{
		{"UUIDs, one", results(parseUUIDs(a + "\n")), results([]string{a}, true)},
		{"UUIDs, two slots", results(parseUUIDs(a + "\n" + b + "\n")), results([]string{a, b}, true)},
		{"UUIDs, nothing loaded", results(parseUUIDs("")), results(noUUIDs, true)},
		{"UUIDs, blank", results(parseUUIDs("\n")), results(noUUIDs, true)},
		{"UUIDs, null", results(parseUUIDs(nullUUID + "\n")), results(noUUIDs, true)},
		{"UUIDs, null of one slot", results(parseUUIDs(nullUUID + "\n" + b + "\n")), results([]string{"", b}, true)},
		{"UUIDs, upper case", results(parseUUIDs(strings.ToUpper(a) + "\n")), results([]string{a}, true)},
		{"UUIDs, without newline", results(parseUUIDs(a)), results([]string{a}, true)},
		{"UUIDs, cut off", results(parseUUIDs(a[:20])), results(noUUIDs, false)},
		{"UUIDs, garbage", results(parseUUIDs("unable to give xclbin id")), results(noUUIDs, false)},

		{"units, now", results(parseCUs("0,1,vadd:vadd_2,0x1810000,0x1,1284329\n")), units(computeUnit{unitPlace: unitPlace{index: 1}, name: "vadd:vadd_2", status: 1, executions: 1284329})},
		{"units, before there were slots", results(parseCUs("0,vadd:vadd_1,0x1800000,0x4,7\n")), units(computeUnit{name: "vadd:vadd_1", status: 4, executions: 7})},
		{"units, processor kernel", results(parseCUs("0,65536,hello:0,0x2,3\n")), units(computeUnit{unitPlace: unitPlace{index: 65536, ps: true}, name: "hello:0", status: 2, executions: 3})},
		{"units, given up", results(parseCUs("0,0,a:a,0x0,0xffffffff,0\n")), units(computeUnit{name: "a:a", status: math.MaxUint32})},
		{"units, largest count", results(parseCUs("0,0,a:a,0x0,0x4,18446744073709551615\n")), units(computeUnit{name: "a:a", status: 4, executions: math.MaxUint64})},
		{"units, listed twice", results(parseCUs("0,0,a:a,0x0,0x4,9\n0,0,a:a,0x0,0x4,10\n")), units(computeUnit{name: "a:a", status: 4, executions: 10})},
		{"units, lines run together", results(parseCUs("0,0,a:a,0x0,0x40,1,b:b,0x0,0x4,5\n0,2,c:c,0x0,0x4,5\n")), units(computeUnit{unitPlace: unitPlace{index: 2}, name: "c:c", status: 4, executions: 5})},
		{"units, negative", results(parseCUs("0,-1,a:a,0x0,0x4,9\n")), units()},
		{"units, no name", results(parseCUs("0,0,,0x0,0x4,9\n")), units()},
		{"units, empty", results(parseCUs("")), units()},

		{"queues", results(parseNumbers(cuStat)), results(map[string]uint64{
			"Pending queue": 1, "Running queue": 2, "Submitted queue": 3, "Completed queue": 4, "Bad state": 0,
			"Current credit": 1, "CU status": 4, "sleep cnt": 0, "max running": 1,
		})},
		{"queues, cut off", results(parseNumbers(cuStat[:30])), results(map[string]uint64{"Pending queue": 1})},
		{"queues, negative", results(parseNumbers("Pending queue: -1\n")), results(map[string]uint64{})},

		{"channels", results(parseChannels("73014444032 91268055040\n73014440960 91268046848\n")), results(uint64(146028884992), uint64(182536101888), true)},
		{"channels, idle", results(parseChannels("0 0\n")), results(uint64(0), uint64(0), true)},
		{"channels, empty", results(parseChannels("")), results(uint64(0), uint64(0), false)},
		{"channels, too large", results(parseChannels("18446744073709551615 0\n1 0\n")), results(uint64(0), uint64(0), false)},
		{"channels, three numbers", results(parseChannels("1 2 3\n")), results(uint64(0), uint64(0), false)},
		{"channels, negative", results(parseChannels("-1 2\n")), results(uint64(0), uint64(0), false)},

		{"clocks", results(parseClocks("300\n500\n0\n0\n")), results([]float64{300e6, 500e6, 0, 0})},

		{"level, not tripped", results(parseLevel("18446744073709551615")), results(false, true)},
		{"level 0", results(parseLevel("0")), results(true, true)},
		{"level 3", results(parseLevel("3")), results(true, true)},
		{"level, negative", results(parseLevel("-1")), results(false, false)},
		{"level, a fraction", results(parseLevel("1.8e19")), results(false, false)},
		{"level, empty", results(parseLevel("")), results(false, false)},
		{"trip, unknown", results(parseTrip("level_name:ulp_data_0\n")), results([]string{"unknown"})},
		{
			"trip", results(parseTrip("status_bit19:RECS_WRITE_TO_BVALID_MAX_WAIT\nstatus_bit9:(null)\nlevel_name:ulp_data_0\naraddr:0x0\nawaddr:0x1f\naruser:0x0\nawuser:0x0\n")),
			results([]string{"recs_write_to_bvalid_max_wait"}),
		},

		{"banks, empty", results(parseBanks("")), noBanks},
		{"banks, garbage", results(parseBanks("[IN-USE] bank0 (16384MB)\n")), noBanks},
		{"banks, negative", results(parseBanks("[IN-USE] bank0@0x0 (1MB): -1KB 1BOs\n")), noBanks},
		{"banks, too large", results(parseBanks("[IN-USE] bank0@0x0 (99999999999MB): 1KB 1BOs\n")), noBanks},
		{
			"banks", results(parseBanks("[IN-USE] bank0@0x004000000000 (16384MB): 524288KB 12BOs\n[UNUSED] HBM[1]@0x10000000 (256MB): 0KB 0BOs\n" +
				"[UNUSED] bank0@0x0 (0MB): 0KB 0BOs\n[== BO Stats Below ==] NA@0x000000000000 (0MB): 0KB 0BOs\n[Regular] 1572864KB 15BOs\n")),
			results([]memBank{{"bank0", 16 << 30, 512 << 20}, {"HBM[1]", 256 << 20, 0}, {"bank0", 0, 0}}, true),
		},
		{
			"sensors", results(parseSDM("Device,43,42,45,1,0\n0.85V vccint,851,850,853,1,-3\nempty cage,0,0,0,0,0\nnot available,12,12,12,2,0\n" +
				"mad exponent,1,1,1,1,99\nshort,1,1\nfpga,4294967295,0,0,127,0\n")),
			results([]sdmSensor{{"Device", 43}, {"0.85V vccint", 0.851}}),
		},
		{"boot", results(parseNumbers("HAS_FPT:1\nBOOT_ON_BACKUP:1\nBOOT_ON_OFFSET:0x5e0000\nMODEL:x\n")), results(map[string]uint64{"HAS_FPT": 1, "BOOT_ON_BACKUP": 1, "BOOT_ON_OFFSET": 0x5e0000})},
	} {
		if diff := cmp.Diff(c.want, c.got, cmpopts.EquateEmpty(), cmp.AllowUnexported(computeUnit{}, unitPlace{}, memBank{}, sdmSensor{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

// FuzzXRT checks every parser: for any text of a driver, the results are fit for labels
// and samples. The kernel bounds their number: a file has a page.
func FuzzXRT(f *testing.F) {
	for _, seed := range []string{
		cuStat, "2a44fc56-4eba-430c-95a4-13fa87dee9cc\n", "0,0,vadd:vadd_1,0x1800000,0x4,1284331\n0,65536,hello:0,0x2,3\n",
		"[IN-USE] bank0@0x004000000000 (16384MB): 524288KB 12BOs\n",
		"300\n500\n0\n0\n", "18446744073709551615\n", "73014444032 91268055040\n", "status_bit19:X\nlevel_name:y\n",
		"Device,43,42,45,1,0\n", "HAS_FPT:1\n",
		"xmc.u.18874368", "dma.xdma.u.5242880", "xmc.u2.m.1025",
	} {
		f.Add(seed)
	}
	name := func(t *testing.T, s string) {
		t.Helper()
		if s == "" || len(s) > labelBytes+4 || strings.ContainsAny(s, "\n\x00") || strings.ToValidUTF8(s, "") != s {
			t.Errorf("label value %q", s)
		}
	}
	number := func(t *testing.T, v float64) {
		t.Helper()
		if math.IsNaN(v) || math.IsInf(v, 0) || v < 0 {
			t.Errorf("value %v", v)
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		ids, _ := parseUUIDs(text)
		for _, id := range ids {
			if id != "" && (!isUUID(id) || id == nullUUID) {
				t.Errorf("uuid %q", id)
			}
		}
		seen := map[[2]int]int{}
		for _, u := range parseCUs(text) {
			name(t, u.name)
			if seen[[2]int{u.slot, u.index}]++; seen[[2]int{u.slot, u.index}] > 2 {
				t.Errorf("unit %d,%d more than once", u.slot, u.index)
			}
		}
		parseChannels(text)
		parseLevel(text)
		for _, hz := range parseClocks(text) {
			number(t, hz)
		}
		parseTrip(text)
		parseBanks(text)
		for _, s := range parseSDM(text) {
			name(t, s.name)
			number(t, s.value)
		}
		parseNumbers(text)
		if kind := subdeviceKind(text); !strings.HasPrefix(text, kind) {
			t.Errorf("%q is a %q", text, kind)
		}
		if board := productName(tidy(text), tidy(text), ""); len(board) > labelBytes+len("ALVEO ") {
			t.Errorf("product %q", board)
		}
	})
}
