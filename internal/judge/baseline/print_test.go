package baseline_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/judge/baseline"
	"github.com/accel-exporter/accel-exporter/internal/sim/golden"
)

// node returns a Snapshot with several kinds of devices.
func node() *collector.Snapshot {
	shaped := h100("GPU-2", reading(collector.MIGMode, 1, "current"), reading(collector.MIGInstances, 7, "1g.10gb"))
	second := h100("GPU-1")
	second.Readings[0] = info(collector.FirmwareInfo, "vbios", "96.00.89.00.01")
	return snapshot(
		[]collector.Reading{driver("580.95.05", "13.0"), info(collector.DriverInfo, "amd", "2.16.204", "", "", "")},
		h100("GPU-0"), second, shaped,
		collector.Device{ID: "MIG-1", Parent: "GPU-2", Class: collector.GPU, Vendor: "nvidia", Model: "NVIDIA H100 80GB HBM3", Readings: []collector.Reading{up}},
		collector.Device{ID: "GPU-9", Class: collector.GPU, Vendor: "nvidia", Model: "NVIDIA H100 80GB HBM3", Down: "lost", Readings: []collector.Reading{info(collector.FirmwareInfo, "vbios", "stale")}},
		n3000("0000:1b:00.0", afuA, 1), n3000("0000:1c:00.0", afuB, 0),
		collector.Device{
			ID: "0000:5e:00.1", Class: collector.FPGA, Vendor: "amd", PCI: "0000:5e:00.1",
			Readings: []collector.Reading{
				up, info(collector.FPGAInfo, "xrt", "xocl", "10ee:5005", ""), info(collector.FPGABitstreamInfo, "static", "shell", "xilinx_u250_xdma_201830_2"),
				info(collector.FirmwareInfo, "satellite controller", "yes"), info(collector.FPGARootKeyInfo, "sr", "none"),
			},
		},
		collector.Device{ID: "unnamed", Class: collector.FPGA, Vendor: "amd", Readings: []collector.Reading{up}},
		collector.Device{ID: "0000:00:1d.0", Class: collector.FPGA, Vendor: "aws", Model: "AWS F2", Readings: []collector.Reading{up}},
	)
}

func TestPrint(t *testing.T) {
	got, err := baseline.Print(node())
	if err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "testdata/node.yml", string(got))
	s := node()
	lines := judged(parse(t, string(got)), baseline.Options{}, s)
	if bad := drifting(lines); len(bad) > 0 {
		t.Errorf("drift from the printed catalogue: %q", bad)
	}
	// Every device with a model or PCI id has an entry, and all its values are
	// compared.
	counts := map[string]int{}
	for _, l := range lines {
		counts[strings.Fields(l)[0]]++
	}
	wanted := map[string]int{
		"GPU-0": 7, "GPU-1": 7, "GPU-2": 7, "GPU-9": 1,
		"0000:1b:00.0": 5, "0000:1c:00.0": 3, "0000:00:1d.0": 1,
		"0000:5e:00.1": 6,
	}
	if diff := cmp.Diff(wanted, counts); diff != "" {
		t.Errorf("series by device (-want +got):\n%s", diff)
	}
}

func TestPrintNothing(t *testing.T) {
	for name, s := range map[string]*collector.Snapshot{
		"no device": {},
		"no name":   snapshot(nil, collector.Device{ID: "x", Class: collector.GPU, Readings: []collector.Reading{up}}),
	} {
		if b, err := baseline.Print(s); err == nil || b != nil {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
}

func checkPrint(t *testing.T, s *collector.Snapshot) {
	t.Helper()
	text, err := baseline.Print(s)
	if err != nil {
		return // no device with a model or PCI id
	}
	again, _ := baseline.Print(s)
	if string(again) != string(text) {
		t.Fatal("a second Print has another result")
	}
	c, err := baseline.Parse("printed.yml", text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if bad := drifting(judged(c, baseline.Options{}, s)); len(bad) > 0 {
		t.Fatalf("%q\n%s", bad, text)
	}
}

// TestPrintEntries: the entries of devices that are hard to name or to approve.
func TestPrintEntries(t *testing.T) {
	fleet := func(n int, device func(i int) collector.Device) *collector.Snapshot {
		s := new(collector.Snapshot)
		for i := range n {
			s.Devices = append(s.Devices, device(i))
		}
		return s
	}
	gpu := func(i int, model string, more ...collector.Reading) collector.Device {
		return collector.Device{ID: fmt.Sprint("G", i), Class: collector.GPU, Vendor: "v", Model: model, Readings: append([]collector.Reading{up}, more...)}
	}
	for name, c := range map[string]struct {
		s   *collector.Snapshot
		has []string
	}{
		"a text that is not printable, on one of two devices": {
			s: fleet(2, func(i int) collector.Device {
				return gpu(i, "m", info(collector.FirmwareInfo, "vbios", "b"+strings.Repeat("\n", i)))
			}),
			has: []string{"approved: {}"},
		},
		"models with similar names": {
			s:   fleet(3, func(i int) collector.Device { return gpu(i, "m"+strings.Repeat("/", i)+"1") }),
			has: []string{`name: v-m1`, `name: v-m-1`, `name: v-m-1-2`},
		},
		"a model that is a pattern and matches another model": {
			s:   fleet(2, func(i int) collector.Device { return gpu(i, "m"+strings.Repeat("*", i)) }),
			has: []string{"# Left out, as neither their model nor their PCI id is known: G1."},
		},
		"a vendor that is known for one device only": {
			s: &collector.Snapshot{Devices: []collector.Device{
				{ID: "A", Class: collector.GPU, Model: "m"},
				{ID: "B", Class: collector.GPU, Model: "m", Vendor: "v", Readings: []collector.Reading{up, info(collector.FirmwareInfo, "vbios", "1")}},
			}},
			has: []string{`name: v-m`, `name: m`, "vbios:\n        - \"1\""},
		},
		"an ID with a line break": {
			s:   &collector.Snapshot{Devices: []collector.Device{{ID: "a\nb\"\xff", Class: collector.GPU, Model: "m"}}},
			has: []string{`a\nb\"?`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := baseline.Print(c.s)
			if err != nil {
				t.Fatal(err)
			}
			checkPrint(t, c.s)
			for _, want := range c.has {
				if !strings.Contains(string(text), want) {
					t.Errorf("lacks %s", want)
				}
			}
			if t.Failed() {
				t.Logf("%s", text)
			}
		})
	}
}
