package podmap_test

import (
	"slices"
	"testing"

	"github.com/accel-exporter/accel-exporter/podmap"
)

// TestResolveDRA: attributes that a DRA driver publishes identify the device before its
// name does.
func TestResolveDRA(t *testing.T) {
	r := podmap.Resolver{
		Aliases: []podmap.Alias{{Resource: "gpu.example.com", ID: "mine", Device: gpuB}},
		Ignore:  []string{"*.nic.example.com"},
	}
	x := r.Index(machine)
	for _, c := range []struct {
		name, driver, device string
		published            podmap.SliceDevice
		want                 string
		how                  podmap.How
	}{
		{"no attributes", "gpu.nvidia.com", "gpu-2", podmap.SliceDevice{}, gpuA, podmap.HowMinor},
		{"a name without meaning", "gpu.example.com", "left", podmap.SliceDevice{UUID: gpuA}, gpuA, podmap.HowID},
		{"a UUID and the name of another device", "gpu.nvidia.com", "gpu-2", podmap.SliceDevice{UUID: gpuC, PCI: "0000:1b:00.0"}, gpuC, podmap.HowID},
		{"a partition", "gpu.nvidia.com", "a", podmap.SliceDevice{UUID: mig1, PCI: "0000:1d:00.0", Partition: true}, mig1, podmap.HowID},
		{"a partition without a UUID", "gpu.nvidia.com", "gpu-0-mig-3g40gb-9-4", podmap.SliceDevice{PCI: "0000:1d:00.0", Partition: true}, mig1, podmap.HowProfile},
		{"a partition that does not exist", "gpu.nvidia.com", "gpu-0-mig-3g40gb-9-4", podmap.SliceDevice{UUID: "MIG-5f1c9a1e-0003-0003-0003-000000000099", PCI: "0000:1d:00.0", Partition: true}, "", podmap.HowNone},
		{"a UUID that does not exist", "gpu.nvidia.com", "gpu-2", podmap.SliceDevice{UUID: "GPU-5f1c9a1e-0003-0003-0003-000000000099"}, "", podmap.HowNone},
		{"a UUID that does not exist with an address that does", "gpu.nvidia.com", "x", podmap.SliceDevice{UUID: "GPU-5f1c9a1e-0003-0003-0003-000000000099", PCI: "0000:1C:00.0"}, gpuB, podmap.HowPCI},
		{"an address", "gpu.amd.com", "x", podmap.SliceDevice{PCI: "0000:c1:00.0"}, "0000:c1:00.0", podmap.HowID},
		{"an address of another function", "fpga.example.com", "x", podmap.SliceDevice{PCI: "0000:86:00.0"}, "u250", podmap.HowFunction},
		{"a UUID of an unknown form", "gpu.nvidia.com", "gpu-2", podmap.SliceDevice{UUID: "3"}, gpuA, podmap.HowMinor},
		{"an address of an unknown form", "gpu.nvidia.com", "gpu-2", podmap.SliceDevice{PCI: "pci0000:1b"}, gpuA, podmap.HowMinor},
		{"an alias", "gpu.example.com", "mine", podmap.SliceDevice{UUID: gpuA}, gpuB, podmap.HowAlias},
		{"an ignored driver", "a.nic.example.com", "x", podmap.SliceDevice{UUID: gpuA}, "", podmap.HowIgnored},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := podmap.Allocation{Resource: c.driver, DeviceID: c.device, Ref: podmap.ParseDRA(c.driver, c.device)}
			if id, how := x.ResolveDRA(h, c.published); id != c.want || how != c.how {
				t.Errorf("%q, %s; want %q, %s", id, how, c.want, c.how)
			}
		})
	}
}

// FuzzResolveDRA: any attributes resolve to a device of the machine or to none. The
// UUID of a device resolves to this device.
func FuzzResolveDRA(f *testing.F) {
	f.Add("gpu.nvidia.com", "gpu-0", gpuA, "0000:1b:00.0", false)
	f.Add("gpu.nvidia.com", "gpu-0-mig-1g10gb-19-6", mig3, "0000:1D:00.0", true)
	f.Add("fpga.example.com", "a", "", "0000-5f-00-0-0x0b30", false)
	f.Add("gpu.amd.com", "gpu-2-130", "MIG-"+gpuC+"/7/0", "pci0000:c0", true)
	x := new(podmap.Resolver).Index(machine)
	f.Fuzz(func(t *testing.T, driver, name, uuid, pci string, partition bool) {
		h := podmap.Allocation{Resource: driver, DeviceID: name, Ref: podmap.ParseDRA(driver, name)}
		id, how := x.ResolveDRA(h, podmap.SliceDevice{UUID: uuid, PCI: pci, Partition: partition})
		none := how == podmap.HowNone || how == podmap.HowAmbiguous || how == podmap.HowUnknown
		if is := slices.ContainsFunc(machine, func(k podmap.Known) bool { return k.ID == id }); is == none || is == (id == "") {
			t.Errorf("%q, %s", id, how)
		}
		if slices.Contains([]string{gpuA, gpuB, gpuC, mig1, mig2, mig3}, uuid) && id != uuid {
			t.Errorf("%q for %s", id, uuid)
		}
	})
}
