package baseline_test

import (
	"testing"

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
}
