package collector_test

import (
	"testing"

	"github.com/accel-exporter/accel-exporter/collector"
)

func TestPCIClass(t *testing.T) {
	yes, no := func() bool { return true }, func() bool { return false }
	for _, c := range []struct {
		name string
		f    collector.PCIFunction
		want collector.Class
	}{
		{"NVIDIA 3D controller", collector.PCIFunction{Vendor: 0x10de, Class: 0x030200}, collector.GPU},
		{"NVIDIA audio", collector.PCIFunction{Vendor: 0x10de, Class: 0x040300}, ""},
		{"NVSwitch by driver", collector.PCIFunction{Vendor: 0x10de, Class: 0x068000, Driver: "nvidia-nvswitch"}, collector.Switch},
		{"NVSwitch by id", collector.PCIFunction{Vendor: 0x10de, Device: 0x22a3, Class: 0x068000}, collector.Switch},
		{"NVIDIA bridge", collector.PCIFunction{Vendor: 0x10de, Device: 1, Class: 0x068000}, ""},
		{"DFL card of an unknown vendor", collector.PCIFunction{Vendor: 0x1234, Class: 0x120000, Driver: "dfl-pci"}, collector.FPGA},
		{"Intel FPGA without a driver", collector.PCIFunction{Vendor: 0x8086, Device: 0xbcce, Class: 0x120000}, collector.FPGA},
		{"Intel accelerator that is no FPGA", collector.PCIFunction{Vendor: 0x8086, Device: 0x4940, Class: 0x120000}, ""},
		{"Intel GPU on a card", collector.PCIFunction{Vendor: 0x8086, Class: 0x038000, External: yes}, collector.GPU},
		{"Intel graphics of a processor", collector.PCIFunction{Vendor: 0x8086, Class: 0x038000, External: no}, ""},
		{"Altera", collector.PCIFunction{Vendor: 0x1172, Class: 0x120000}, collector.FPGA},
		{"Xilinx", collector.PCIFunction{Vendor: 0x10ee, Class: 0x058000}, collector.FPGA},
		{"network card of Xilinx", collector.PCIFunction{Vendor: 0x10ee, Class: 0x020000}, ""},
		{"AMD Instinct", collector.PCIFunction{Vendor: 0x1002, Class: 0x120000}, collector.GPU},
		{"AMD VGA", collector.PCIFunction{Vendor: 0x1002, Class: 0x030000}, ""},
		{"AWS F2 management", collector.PCIFunction{Vendor: 0x1d0f, Device: 0x9248, Class: 0x058000}, collector.FPGA},
		{"AWS network", collector.PCIFunction{Vendor: 0x1d0f, Device: 0xec20, Class: 0x020000}, ""},
	} {
		if got := collector.PCIClass(c.f); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestResourceVendor(t *testing.T) {
	for resource, want := range map[string]string{
		"nvidia.com/gpu": "nvidia", "gpu.nvidia.com": "nvidia", "amd.com/gpu": "amd", "xilinx.com/fpga-u250": "amd",
		"fpga.intel.com/af-1": "intel", "example.com/nvidia": "", "vpc.amazonaws.com/pod-eni": "", "amd64.example.com/x": "",
	} {
		if got := collector.ResourceVendor(resource); got != want {
			t.Errorf("%s: %q, want %q", resource, got, want)
		}
		if want != "" && !collector.IsResourceOf(want, resource) {
			t.Errorf("%s is not a resource of %s", resource, want)
		}
	}
	if collector.IsResourceOf("", "nvidia.com/gpu") || collector.IsResourceOf("amd", "nvidia.com/gpu") || !collector.IsResourceOf("acme", "acme.com/npu") {
		t.Error("IsResourceOf is true for resources of other vendors")
	}
}
