package status

import (
	"testing"

	"github.com/accel-exporter/accel-exporter/collector"
)

// TestUnboundAMD: a GPU on the bus without a driver is named; a GPU of a virtual machine
// is not.
func TestUnboundAMD(t *testing.T) {
	gpu := func(address, driver string) collector.Device {
		d, bound := collector.Device{Vendor: "amd", Class: collector.GPU}, 0.0
		if driver != "" {
			bound = 1
		}
		d.Set(collector.PCIeDriverBound, bound, address, driver)
		return d
	}
	for want, devices := range map[string][]collector.Device{
		"": {{Vendor: "amd", Class: collector.FPGA}, {Vendor: "nvidia", Class: collector.GPU}},
		"good: driver amdgpu 2 of 2 GPUs have a driver":    {gpu("0000:c1:00.0", "amdgpu"), gpu("0000:c3:00.0", "vfio-pci")},
		"neutral: driver amdgpu not bound to 0000:c3:00.0": {gpu("0000:c1:00.0", "amdgpu"), gpu("0000:c3:00.0", "")},
	} {
		var v View
		v.remarks(&collector.Snapshot{Devices: devices}, nil)
		got := ""
		for _, r := range v.Remarks {
			got += r.Tone + ": " + r.What + " " + r.Found
		}
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
