package baseline_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/judge/baseline"
)

// reading returns a reading.
func reading(m *collector.Metric, v float64, labels ...string) collector.Reading {
	return collector.Reading{Metric: m, Labels: labels, Value: v}
}

func info(m *collector.Metric, labels ...string) collector.Reading { return reading(m, 1, labels...) }

// bound is a kernel driver that is bound to a PCI function.
func bound(pci, driver string) collector.Reading {
	return info(collector.PCIeDriverBound, pci, driver)
}

var up = reading(collector.DeviceUp, 1, "")

// h100 returns a GPU that answers.
func h100(id string, more ...collector.Reading) collector.Device {
	return collector.Device{
		ID: id, Class: collector.GPU, Vendor: "nvidia", Model: "NVIDIA H100 80GB HBM3", PCI: "0000:1b:00.0",
		Readings: append([]collector.Reading{
			info(collector.FirmwareInfo, "vbios", "96.00.74.00.01"), bound("0000:1b:00.0", "nvidia"),
			info(collector.FirmwareInfo, "gsp", "580.95.05"),
			reading(collector.PowerWatts, 300), up,
			reading(collector.MIGMode, 0, "current"), reading(collector.MIGMode, 0, "pending"),
		}, more...),
	}
}

// n3000 returns a card with one port.
func n3000(id, afu string, loaded float64) collector.Device {
	d := collector.Device{
		ID: id, Class: collector.FPGA, Vendor: "intel", Model: "Intel FPGA PAC N3000", PCI: id,
		Readings: []collector.Reading{
			info(collector.FPGAInfo, "dfl", "dfl-pci", "8086:0b30", "DFL FME FPGA Manager"),
			info(collector.FPGABitstreamInfo, "static", "fim", "0x202000200000237"),
			info(collector.FPGABitstreamInfo, "port0", "pr_interface", "ce48969398f05f33946d560708be108a"),
			reading(collector.FPGABitstreamLoaded, loaded, "port0"), up,
		},
	}
	if afu != "" {
		d.Readings = append(d.Readings, info(collector.FPGABitstreamInfo, "port0", "afu", afu))
	}
	return d
}

const (
	afuA = "d8424dc4a4a3c413f89e433683f9040b"
	afuB = "00112233445566778899aabbccddeeff"
	// promisedA is a real resource name. It encodes the interface ce4896… and afuA.
	promisedA = "fpga.intel.com/af-ce4.d84.zkiWk5jwXzOUbVYHCL4QithCTcSko8QT-J5DNoP5BAs"
)

// driver is the node's NVIDIA driver.
func driver(version, cuda string) collector.Reading {
	return info(collector.DriverInfo, "nvidia", version, "r"+version, version, cuda)
}

func snapshot(node []collector.Reading, devices ...collector.Device) *collector.Snapshot {
	s := &collector.Snapshot{Node: slices.Clone(node), Devices: slices.Clone(devices)}
	for i := range s.Devices {
		s.Devices[i].Readings = slices.Clone(s.Devices[i].Readings)
	}
	return s
}

func parse(t testing.TB, text string) *baseline.Catalogue {
	t.Helper()
	c, err := baseline.Parse("test.yml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// concluded returns the series that the Judge added, one per line.
func concluded(s *collector.Snapshot) []string {
	var out []string
	for _, d := range s.Devices {
		for _, r := range d.Readings {
			switch r.Metric {
			case collector.Drift:
				out = append(out, fmt.Sprintf("%s %s want %s have %s: %g", d.ID, r.Labels[0], r.Labels[1], r.Labels[2], r.Value))
			case collector.BaselineInfo:
				out = append(out, fmt.Sprintf("%s is %s", d.ID, r.Labels[0]))
			}
		}
	}
	return out
}

func judged(c *baseline.Catalogue, o baseline.Options, s *collector.Snapshot) []string {
	baseline.New(c, o).Judge(s)
	return concluded(s)
}

func drifting(lines []string) []string {
	return slices.DeleteFunc(slices.Clone(lines), func(l string) bool { return !strings.HasSuffix(l, ": 1") })
}

const fleet = `
entries:
  - name: training
    match: {model: NVIDIA H100*, labels: {pool: train*}}
    approved: {mig: [disabled], driver: ["580.95.05"]}
  - name: h100
    match: {class: gpu, vendor: nvidia, model: NVIDIA H100*}
    approved:
      driver: ["580.95.05", "580.105.*"]
      cuda: ["13.0"]
      module: [nvidia]
      mig: ["7x1g.10gb", "1x3g.40gb 2x2g.20gb", empty]
      firmware:
        vbios: [96.00.74.00.01]
        inforom: [G520.0200.00.05]
  - name: n3000
    match: {pci_id: "8086:0b30"}
    approved:
      bitstream:
        fim: ["0x202000200000237"]
        port0/afu: [D8424DC4-A4A3-C413-F89E-433683F9040B]
        afu: [none-of-these]
`

func TestJudge(t *testing.T) {
	for name, c := range map[string]struct {
		catalogue string
		options   baseline.Options
		node      []collector.Reading
		devices   []collector.Device
		want      []string
	}{
		"all approved": {
			node:    []collector.Reading{driver("580.105.08", "13.0")},
			devices: []collector.Device{h100("G", reading(collector.MIGMode, 1, "current"), reading(collector.MIGInstances, 2, "2g.20gb"), reading(collector.MIGInstances, 1, "3g.40gb"))},
			want: []string{
				"G is h100",
				"G module want nvidia have nvidia: 0",
				"G driver want 580.95.05,580.105.* have 580.105.08: 0",
				"G cuda want 13.0 have 13.0: 0",
				"G mig want 7x1g.10gb,2x2g.20gb 1x3g.40gb,empty have 2x2g.20gb 1x3g.40gb: 0",
				"G vbios want 96.00.74.00.01 have 96.00.74.00.01: 0",
			},
		},
		"nothing approved": {
			node: []collector.Reading{driver("570.1", "12.8"), info(collector.DriverInfo, "amd", "6.0", "", "", "")},
			devices: []collector.Device{{
				ID: "G", Class: collector.GPU, Vendor: "nvidia", Model: "NVIDIA H100 PCIe", PCI: "0000:1b:00.0",
				Readings: []collector.Reading{up, bound("0000:1b:00.1", "nvidia"), bound("0000:1b:00.0", "vfio-pci"), info(collector.FirmwareInfo, "vbios", "1"), info(collector.FirmwareInfo, "inforom", "2"), info(collector.FirmwareInfo, "oem", "3"), reading(collector.MIGMode, 0, "current")},
			}},
			want: []string{
				"G is h100",
				"G module want nvidia have vfio-pci: 1",
				"G driver want 580.95.05,580.105.* have 570.1: 1",
				"G cuda want 13.0 have 12.8: 1",
				"G mig want 7x1g.10gb,2x2g.20gb 1x3g.40gb,empty have disabled: 1",
				"G vbios want 96.00.74.00.01 have 1: 1",
				"G inforom want G520.0200.00.05 have 2: 1",
			},
		},
		"a partition of unknown profile": {
			catalogue: "entries: [{name: a, approved: {mig: [7x1g.10gb]}}]",
			devices:   []collector.Device{h100("G", reading(collector.MIGMode, 1, "current"), reading(collector.MIGInstances, 6, "1g.10gb"), reading(collector.MIGInstances, 1, ""))},
			want:      []string{"G is a"},
		},
		"firmware that is named like another section": {
			catalogue: "entries: [{name: a, approved: {module: [x], firmware: {\"*\": [x]}}}]",
			devices: []collector.Device{{ID: "F", Class: collector.FPGA, Readings: []collector.Reading{
				up, info(collector.FirmwareInfo, "module", "y"), info(collector.FirmwareInfo, "", "y"), info(collector.FirmwareInfo, "port0/afu", "y"),
			}}},
			want: []string{"F is a"},
		},
		"texts that are too long or not UTF-8": {
			catalogue: "entries: [{name: a, approved: {firmware: {a: [b*], b: [" + strings.Repeat("x", 190) + ", y, " + strings.Repeat("z", 50) + "], c: [c]}}}]",
			devices: []collector.Device{{ID: "F", Class: collector.FPGA, Readings: []collector.Reading{
				up, info(collector.FirmwareInfo, "a", "b"+strings.Repeat("é", 100)), info(collector.FirmwareInfo, "b", "y"), info(collector.FirmwareInfo, "c", "\xff"),
			}}},
			want: []string{
				"F is a",
				"F a want b* have b" + strings.Repeat("é", 99) + "…: 0",
				"F b want " + strings.Repeat("x", 190) + ",y,… have y: 0",
				"F c want c have ?: 1",
			},
		},
		"the PCI id of its source takes precedence over that of the bus": {
			catalogue: "entries: [{name: a, match: {pci_id: \"8086:0b30\"}}]",
			devices: []collector.Device{{ID: "F", PCI: "0000:1b:00.0", Class: collector.FPGA, Readings: []collector.Reading{
				info(collector.PCIeFunctionInfo, "0000:1b:00.0", "0x10de", "0x2330", "", "", "", "", "", ""), info(collector.FPGAInfo, "dfl", "", "8086:0b30", ""),
				info(collector.PCIeFunctionInfo, "0000:1b:00.0", "0x10de", "0x2330", "", "", "", "", "", ""),
			}}},
			want: []string{"F is a"},
		},
		"partitions are compared as the layout of their parent only": {
			catalogue: "entries: [{name: a, approved: {firmware: {vbios: [x]}}}]",
			devices:   []collector.Device{{ID: "MIG-1", Parent: "G", Class: collector.GPU, Readings: []collector.Reading{up, info(collector.FirmwareInfo, "vbios", "y")}}},
		},
		"an entry with a node label": {
			options: baseline.Options{Labels: map[string]string{"pool": "training-eu"}},
			node:    []collector.Reading{driver("580.95.05", "13.0")},
			devices: []collector.Device{h100("G")},
			want:    []string{"G is training", "G driver want 580.95.05 have 580.95.05: 0", "G mig want disabled have disabled: 0"},
		},
		"a device that does not answer has no drift": {
			devices: []collector.Device{
				{ID: "D", Class: collector.GPU, Vendor: "nvidia", Model: "NVIDIA H100", Down: "lost", Readings: []collector.Reading{info(collector.FirmwareInfo, "vbios", "old"), reading(collector.DeviceUp, 0, "lost")}},
				{ID: "E", Class: collector.GPU, Vendor: "nvidia", Model: "NVIDIA H100", Readings: []collector.Reading{info(collector.FirmwareInfo, "vbios", "old")}},
			},
			want: []string{"D is h100", "E is h100"},
		},
		"the PCI core reports the driver of a device that no other source sees": {
			devices: []collector.Device{
				{
					ID: "0000:1b:00.0", PCI: "0000:1b:00.0", Class: collector.GPU, Vendor: "nvidia", Model: "NVIDIA H100", Witness: true,
					Readings: []collector.Reading{bound("0000:1b:00.0", "nouveau"), info(collector.FirmwareInfo, "vbios", "old")},
				},
				{
					ID: "0000:1c:00.0", PCI: "0000:1c:00.0", Class: collector.GPU, Vendor: "nvidia", Model: "NVIDIA H100", Witness: true,
					Readings: []collector.Reading{reading(collector.PCIeDriverBound, 0, "0000:1c:00.0", "")},
				},
			},
			want: []string{
				"0000:1b:00.0 is h100", "0000:1b:00.0 module want nvidia have nouveau: 1",
				"0000:1c:00.0 is h100", "0000:1c:00.0 module want nvidia have none: 1",
			},
		},
		"the source knows the driver of a device that is on no bus": {
			catalogue: "entries: [{name: a, approved: {module: [zynqmp_fpga_manager]}}]",
			devices: []collector.Device{
				{ID: "A", Class: collector.FPGA, Readings: []collector.Reading{up, info(collector.FPGAInfo, "manager", "zynqmp_fpga_manager", "", "")}},
				{ID: "B", Class: collector.FPGA, Readings: []collector.Reading{info(collector.FPGAInfo, "manager", "zynqmp_fpga_manager", "", "")}},
			},
			want: []string{"A is a", "A module want zynqmp_fpga_manager have zynqmp_fpga_manager: 0", "B is a"},
		},
		"bitstream by region before kind, as a UUID": {
			devices: []collector.Device{n3000("F", afuA, 1)},
			want: []string{
				"F is n3000",
				"F static/fim want 0x202000200000237 have 0x202000200000237: 0",
				"F port0/afu want D8424DC4-A4A3-C413-F89E-433683F9040B have " + afuA + ": 0",
			},
		},
		"two values of one component": {
			catalogue: "entries: [{name: a, approved: {firmware: {bmc: [\"1\"]}}}]",
			devices:   []collector.Device{{ID: "F", Class: collector.FPGA, Readings: []collector.Reading{up, info(collector.FirmwareInfo, "bmc", "1"), info(collector.FirmwareInfo, "bmc", "2")}}},
			want:      []string{"F is a", "F bmc want 1 have 2: 1"},
		},
		"an allocated card matches its resource name without a catalogue": {
			catalogue: "none",
			options:   baseline.Options{Resources: func(string) []string { return []string{promisedA, "example.com/other"} }},
			devices:   []collector.Device{n3000("F", afuA, 1)},
			want:      []string{"F held/afu want " + afuA + " have " + afuA + ": 0", "F held/interface want ce48969398f05f33946d560708be108a have ce48969398f05f33946d560708be108a: 0"},
		},
		"a card that is allocated by its region": {
			catalogue: "none",
			options:   baseline.Options{Resources: func(string) []string { return []string{"fpga.intel.com/region-" + interfaceA} }},
			devices:   []collector.Device{n3000("F", afuA, 1)},
			want:      []string{"F held/interface want " + interfaceA + " have " + interfaceA + ": 0"},
		},
		"an allocated card has another function": {
			catalogue: "none",
			options:   baseline.Options{Resources: func(string) []string { return []string{promisedA} }},
			devices:   []collector.Device{n3000("F", afuB, 1)},
			want:      []string{"F held/afu want " + afuA + " have " + afuB + ": 1", "F held/interface want ce48969398f05f33946d560708be108a have ce48969398f05f33946d560708be108a: 0"},
		},
		"another function in the empty region of an allocated card is not compared": {
			catalogue: "none",
			options:   baseline.Options{Resources: func(string) []string { return []string{promisedA} }},
			devices:   []collector.Device{n3000("F", afuB, 0)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var cat *baseline.Catalogue
			switch c.catalogue {
			case "":
				cat = parse(t, fleet)
			case "none":
			default:
				cat = parse(t, c.catalogue)
			}
			if diff := cmp.Diff(c.want, judged(cat, c.options, snapshot(c.node, c.devices...))); diff != "" {
				t.Errorf("series (-want +got):\n%s", diff)
			}
		})
	}
}

// TestTrap03ReconfigurationIsNoDrift: a region that is not loaded, as during a
// reconfiguration, is not compared. The new design is.
func TestTrap03ReconfigurationIsNoDrift(t *testing.T) {
	j := baseline.New(parse(t, fleet), baseline.Options{})
	for _, step := range []struct {
		afu    string
		loaded float64
		want   []string
	}{
		{afuA, 1, nil},
		{afuA, 0, nil},
		{afuB, 0, nil},
		{"", 0, nil},
		{afuB, 1, []string{"F port0/afu want D8424DC4-A4A3-C413-F89E-433683F9040B have " + afuB + ": 1"}},
		{afuB, 0, nil},
		{afuA, 1, nil},
	} {
		s := snapshot(nil, n3000("F", step.afu, step.loaded))
		j.Judge(s)
		lines := concluded(s)
		if diff := cmp.Diff(step.want, drifting(lines), cmp.Transformer("", func(s []string) string { return strings.Join(s, "\n") })); diff != "" {
			t.Errorf("%+v: drift (-want +got):\n%s", step, diff)
		}
		if compared := slices.ContainsFunc(lines, func(l string) bool { return strings.Contains(l, "port0/afu") }); compared != (step.loaded == 1) {
			t.Errorf("%+v: %q", step, lines)
		}
	}
}
