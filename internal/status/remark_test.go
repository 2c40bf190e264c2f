package status

import (
	"strings"
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

// TestUnknownFaults: what the exporter has forgotten is named, with what to mount.
func TestUnknownFaults(t *testing.T) {
	d := collector.Device{ID: "GPU-1"}
	d.Set(collector.FaultsUnknown, 1.7e9)
	var v View
	v.remarks(&collector.Snapshot{Devices: []collector.Device{d}}, nil)
	if r := v.Remarks[0]; r.Found != "unknown before 2023-11-14T22:13:20Z, of GPU-1" || !strings.Contains(r.Cure, "--path.state") {
		t.Errorf("%+v", r)
	}
}

// TestNoValues: a GPU that answers and whose driver has no values, as on a Jetson, is
// named; a suspended GPU is not.
func TestNoValues(t *testing.T) {
	gpu := func(id string) collector.Device {
		d := collector.Device{ID: id, Vendor: "nvidia", Class: collector.GPU}
		d.SetBool(collector.DeviceUp, true, "")
		return d
	}
	asleep, measured := gpu("GPU-2"), gpu("GPU-3")
	asleep.SetBool(collector.PCIeSuspended, true, "0000:01:00.0")
	measured.Set(collector.MemoryTotal, 16e9)
	var v View
	v.remarks(&collector.Snapshot{Devices: []collector.Device{gpu("GPU-1"), asleep, measured}}, nil)
	if len(v.Remarks) != 1 || !strings.HasSuffix(v.Remarks[0].Found, "utilization of GPU-1") || v.Remarks[0].Tone != neutral {
		t.Errorf("%+v", v.Remarks)
	}
}
