package podmap_test

import (
	"crypto/sha1"
	"encoding/hex"
	"slices"
	"testing"

	"github.com/accel-exporter/accel-exporter/podmap"
)

const (
	gpuC = "GPU-5f1c9a1e-0003-0003-0003-000000000003"
	mig1 = "MIG-5f1c9a1e-0003-0003-0003-000000000011"
	mig2 = "MIG-5f1c9a1e-0003-0003-0003-000000000012"
	mig3 = "MIG-5f1c9a1e-0003-0003-0003-000000000013"
)

// machine has two whole GPUs, a GPU with three MIG devices, and FPGAs and GPUs of other
// vendors.
var machine = []podmap.Known{
	{ID: gpuA, Vendor: "nvidia", PCI: "0000:1b:00.0", Index: "0", KubeIDs: []string{"nvidia2"}},
	{ID: gpuB, Vendor: "nvidia", PCI: "0000:1c:00.0", Index: "1", KubeIDs: []string{"nvidia1", "gpu-1", "1"}},
	{ID: gpuC, Vendor: "nvidia", PCI: "0000:1d:00.0", Index: "2", KubeIDs: []string{"nvidia0"}},
	{ID: mig1, Parent: gpuC, Vendor: "nvidia", PCI: "0000:1d:00.0", GI: "1", CI: "0", Profile: "3g.40gb"},
	{ID: mig2, Parent: gpuC, Vendor: "nvidia", PCI: "0000:1d:00.0", GI: "7", CI: "0", Profile: "1g.10gb"},
	{ID: mig3, Parent: gpuC, Vendor: "nvidia", PCI: "0000:1d:00.0", GI: "8", CI: "0", Profile: "1g.10gb"},
	{ID: "0000:c1:00.0", Vendor: "amd", PCI: "0000:c1:00.0", KubeIDs: []string{"card1", "renderD129"}},
	{ID: "amd-xcp-1", Parent: "0000:c1:00.0", Vendor: "amd", PCI: "0000:c1:00.0", KubeIDs: []string{"amdgpu_xcp_1", "card2", "renderD130"}},
	{ID: "0000:03:00.0", Vendor: "intel", PCI: "0000:03:00.0", KubeIDs: []string{"card0", "renderD128"}},
	{ID: "n3000", Vendor: "intel", PCI: "0000:5e:00.0", Functions: []string{"0000:5f:00.0"}, KubeIDs: []string{"dfl-fme.0", "dfl-port.0", "intel-fpga-port.1"}},
	{ID: "u250", Vendor: "amd", PCI: "0000:86:00.1", Functions: []string{"0000:86:00.0"}},
	{ID: "v80-a", Vendor: "amd", PCI: "0000:21:00.0", KubeIDs: []string{"/dev/ami0", "renderD140"}},
	{ID: "v80-b", Vendor: "amd", PCI: "0000:22:00.0", KubeIDs: []string{"/dev/ami1", "renderD141"}},
}

func driver(resource string, dra bool) string {
	if dra {
		return resource
	}
	return ""
}

func generic(replica string, paths ...string) string {
	h := sha1.New()
	h.Write([]byte(replica))
	for _, p := range paths {
		h.Write([]byte(p))
	}
	return hex.EncodeToString(h.Sum(nil))
}

var resolutions = []struct {
	resource, id string
	dra          bool
	want         string
	how          podmap.How
}{
	{gpu, gpuA, false, gpuA, podmap.HowName},
	{"nvidia.com/gpu.shared", gpuA + "::3", false, gpuA, podmap.HowName},
	{"example.com/renamed", gpuA, false, gpuA, podmap.HowName},
	{gpu, gpuA + "-4", false, gpuA, podmap.HowName}, // HAMi
	{"nvidia.com/mig-3g.40gb", mig1, false, mig1, podmap.HowName},
	{"nvidia.com/mig-3g.40gb", mig1 + "::0", false, mig1, podmap.HowName},
	{gpu, "MIG-" + gpuC + "/7/0", false, mig2, podmap.HowName},
	{gpu, "nvidia2", false, gpuA, podmap.HowName}, // not its index
	{gpu, "nvidia1", false, gpuB, podmap.HowName},
	{gpu, "nvidia2/vgpu1", false, gpuA, podmap.HowName},
	{gpu, "nvidia0/gi1", false, mig1, podmap.HowName},
	{gpu, "nvidia0/gi7/vgpu1", false, mig2, podmap.HowName},
	{gpu, "/dev/nvidia2", false, gpuA, podmap.HowName},
	{"gpu.nvidia.com", "gpu-2", true, gpuA, podmap.HowName},
	{"gpu.nvidia.com", "gpu-1", true, gpuB, podmap.HowName},
	{"gpu.nvidia.com", "gpu-0-mig-3g40gb-9-4", true, mig1, podmap.HowName},
	{"gpu.nvidia.com", "gpu-0-mig-9-4-4", true, "", podmap.HowNone},            // no profile
	{"gpu.nvidia.com", "gpu-0-mig-1g10gb-19-6", true, "", podmap.HowAmbiguous}, // the place of a partition is unknown
	{"amd.com/gpu", "0000:c1:00.0", false, "0000:c1:00.0", podmap.HowName},
	{"amd.com/gpu", "0000:c1:00.0-slice-1", false, "0000:c1:00.0", podmap.HowName},
	{"amd.com/cpx_nps4", "amdgpu_xcp_1", false, "amd-xcp-1", podmap.HowName},
	{"gpu.amd.com", "gpu-2-130", true, "amd-xcp-1", podmap.HowName},
	{"gpu.intel.com/i915", "card0-1", false, "0000:03:00.0", podmap.HowName},
	{"gpu.intel.com/xe", "card0-0", false, "0000:03:00.0", podmap.HowName},
	{"gpu.intel.com", "0000-03-00-0-0x56c0", true, "0000:03:00.0", podmap.HowName},
	{"fpga.intel.com/af-ce4.d84.zkiWk5jwXzOUbVYHCL4QithCTcSko8QT-J5DNoP5BAs", "dfl-port.0", false, "n3000", podmap.HowName},
	{"fpga.intel.com/region-69528db6eb31577a8c3668f9faa081f6", "dfl-fme.0", false, "n3000", podmap.HowName},
	{"fpga.intel.com/region-69528db6eb31577a8c3668f9faa081f6", "intel-fpga-fme.0", false, "n3000", podmap.HowName},
	{"fpga.intel.com/af-x", "dfl-port.1", false, "n3000", podmap.HowName},
	{"intel.com/intel_fec_5g", "0000:5f:00.0", false, "n3000", podmap.HowName},
	{"xilinx.com/fpga-xilinx_u250_gen3x16_xdma_shell_4_1-0", "0000:86:00.1", false, "u250", podmap.HowName},
	{"amd.com/xilinx_u250_gen3x16_xdma_shell_4_1-0", "0000:86:00.0", false, "u250", podmap.HowName},
	{"amd.com/xilinx_u250_gen3x16_xdma_shell_4_1-0", "0000:86:00.1-3", false, "u250", podmap.HowName},
	{"squat.ai/v80", generic("0", "/dev/ami1"), false, "v80-b", podmap.HowName},
	{"squat.ai/v80", generic("1", "/dev/ami0"), false, "v80-a", podmap.HowName},
	{"squat.ai/v80-both", generic("0", "/dev/ami0", "/dev/dri/renderD140"), false, "v80-a", podmap.HowName},
	{"squat.ai/v80-both", generic("0", "/dev/ami0", "/dev/dri/renderD141"), false, "", podmap.HowNone}, // of two cards
	{"xilinx.com/fpga-ZynqMP-ZCU102", "1", false, "", podmap.HowAmbiguous},
	{"nvidia.com/gpu", "1", false, gpuB, podmap.HowIndex},
	{"smarter-devices/fuse", "1", false, "", podmap.HowNone},
	{"nvidia.com/rdma_shared_device_a", "0", false, "", podmap.HowNone},
	{"nvidia.com/GH100_H100_PCIE", "0", false, "", podmap.HowNone},
	{"nvidia.com/mig-1g.10gb", "2", false, "", podmap.HowNone}, // the index of a GPU in partitions
	{"nvidia.com/gpu", "2", false, "", podmap.HowNone},
	{"nvidia.com/gpu", "tegra", false, "", podmap.HowAmbiguous},
	{"nvidia.com/gpu", "nvidia9", false, "", podmap.HowNone},
	{"nvidia.com/gpu", "nvidia0/gi4", false, "", podmap.HowNone},
	{"gpu.nvidia.com", "gpu-vfio-1", true, gpuB, podmap.HowName},
	{"gpu.nvidia.com", "gpu-vfio-3", true, "", podmap.HowNone},
	{"compute-domain.nvidia.com", "daemon-0", true, "", podmap.HowIgnored},
	{"volcano.sh/vgpu-memory", gpuA + "-memory-3", false, "", podmap.HowIgnored},
	{"volcano.sh/vgpu-cores", gpuA + "-cores-3", false, "", podmap.HowIgnored},
	{"tencent.com/vcuda-core", "tencent.com/vcuda-core-3", false, "", podmap.HowIgnored},
	{"nvidia.com/NVIDIA_A10-12Q", "0000:1b:00.4", false, "", podmap.HowNone}, // a vGPU by the address of its virtual function
	{"nvidia.com/mig-1g.10gb.shared", mig2 + "::3", false, mig2, podmap.HowName},
	{"npu.intel.com/accel", "accel0-0", false, "", podmap.HowUnknown},
	{"habana.ai/gaudi", "accel0", false, "", podmap.HowNone},
	{"gpu.intel.com/i915_monitoring", "all", false, "", podmap.HowIgnored},
	{"gpu.example.com", "gpu-1", true, "", podmap.HowUnknown},
	{"example.com/widget", "left", false, "u250", podmap.HowAlias},
	{"example.com/widget", "right::2", false, "v80-b", podmap.HowAlias},
	{"other.com/widget", "left", false, "", podmap.HowUnknown},
	{"other.com/widget", "nowhere", false, "", podmap.HowNone},
	{"rdma/hca_shared_devices_a", "0000:1b:00.0", false, "", podmap.HowIgnored},
}

// passed has a GPU that is reserved for a virtual machine, and one with its number.
var passed = []podmap.Known{{ID: "passed", Vendor: "nvidia", KubeIDs: []string{"/dev/vfio/42"}}, {ID: gpuA, Vendor: "nvidia", Index: "42"}}

var resolver = podmap.Resolver{
	Aliases: []podmap.Alias{
		{Resource: "example.com/widget", ID: "left", Device: "0000:86:00.1"},
		{ID: "right::2", Device: "/dev/ami1"},
		{ID: "nowhere", Device: "ami9"},
	},
	Generic: []podmap.Generic{
		{Paths: []string{"/dev/ami*"}, Count: 2},
		{Paths: []string{"/dev/ami?", "/dev/dri/renderD*"}},
	},
	Ignore: []string{"rdma/*"},
}

func TestResolve(t *testing.T) {
	index := resolver.Index(machine)
	for _, c := range resolutions {
		if id, how := index.Resolve(c.resource, parse(c.id, driver(c.resource, c.dra))); id != c.want || how != c.how {
			t.Errorf("%s of %s is %q by %q, want %q by %q", c.id, c.resource, id, how, c.want, c.how)
		}
	}
}

// TestResolveSoleAndAmbiguous: ids on a machine with one device of a vendor, and ids
// that match several devices.
func TestResolveSoleAndAmbiguous(t *testing.T) {
	for _, c := range []struct {
		name     string
		devices  []podmap.Known
		resource string
		id       string
		dra      bool
		want     string
		how      podmap.How
	}{
		{
			"the only FPGA",
			[]podmap.Known{{ID: "zcu102", Vendor: "amd", Index: "0", KubeIDs: []string{"fpga0"}}},
			"xilinx.com/fpga-ZynqMP-ZCU102", "1", false, "zcu102", podmap.HowName,
		},
		{
			"the only GPU",
			[]podmap.Known{{ID: "igpu", Vendor: "nvidia"}, {ID: "card", Vendor: "intel"}},
			gpu, "tegra", false, "igpu", podmap.HowName,
		},
		{
			"a profile of two partitions at unknown places",
			[]podmap.Known{
				{ID: gpuC, Vendor: "nvidia", KubeIDs: []string{"nvidia0"}},
				{ID: mig1, Parent: gpuC, Vendor: "nvidia", Profile: "1g.10gb"},
				{ID: mig2, Parent: gpuC, Vendor: "nvidia", Profile: "1g.10gb"},
			},
			dra, "gpu-0-mig-1g10gb-19-2", true, "", podmap.HowAmbiguous,
		},
		{
			"a profile with media extensions",
			[]podmap.Known{
				{ID: gpuC, Vendor: "nvidia", KubeIDs: []string{"nvidia0"}},
				{ID: mig1, Parent: gpuC, Vendor: "nvidia", Profile: "1g.10gb"},
				{ID: mig2, Parent: gpuC, Vendor: "nvidia", Profile: "1g.10gb+me"},
			},
			dra, "gpu-0-mig-1g10gb-me-20-2", true, mig2, podmap.HowName,
		},
		{
			"an instance with two compute instances",
			[]podmap.Known{
				{ID: gpuC, Vendor: "nvidia", KubeIDs: []string{"nvidia0"}},
				{ID: mig1, Parent: gpuC, Vendor: "nvidia", GI: "1", CI: "0"},
				{ID: mig2, Parent: gpuC, Vendor: "nvidia", GI: "1", CI: "1"},
			},
			gpu, "nvidia0/gi1", false, "", podmap.HowAmbiguous,
		},
		{
			"a name of two devices",
			[]podmap.Known{{ID: "a", Vendor: "amd", KubeIDs: []string{"card1"}}, {ID: "b", Vendor: "amd", KubeIDs: []string{"renderD129"}}},
			"gpu.amd.com", "gpu-1-129", true, "", podmap.HowAmbiguous,
		},
		{
			"the only GPU, by a number that is not its index",
			[]podmap.Known{{ID: gpuA, Vendor: "nvidia", Index: "0"}},
			gpu, "42", false, "", podmap.HowNone,
		},
		{"an IOMMU group, by the model", passed, "nvidia.com/GH100_H100_PCIE", "42", false, "passed", podmap.HowName},
		{"an IOMMU group, by pgpu", passed, "nvidia.com/pgpu", "42", false, "passed", podmap.HowName},
		{"a port with the number of an IOMMU group", passed, "rdma/hca_shared_devices_a", "42", false, "", podmap.HowNone},
		{"a device of another vendor with that number", passed, "aws.amazon.com/neuroncore", "42", false, "", podmap.HowNone},
		{"no devices", nil, gpu, gpuA, false, "", podmap.HowNone},
	} {
		t.Run(c.name, func(t *testing.T) {
			if id, how := new(podmap.Resolver).Index(c.devices).Resolve(c.resource, parse(c.id, driver(c.resource, c.dra))); id != c.want || how != c.how {
				t.Errorf("%q by %q, want %q by %q", id, how, c.want, c.how)
			}
		})
	}
}

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
		{"no attributes", "gpu.nvidia.com", "gpu-2", podmap.SliceDevice{}, gpuA, podmap.HowName},
		{"a name without meaning", "gpu.example.com", "left", podmap.SliceDevice{UUID: gpuA}, gpuA, podmap.HowName},
		{"a UUID and the name of another device", "gpu.nvidia.com", "gpu-2", podmap.SliceDevice{UUID: gpuC, PCI: "0000:1b:00.0"}, gpuC, podmap.HowName},
		{"a partition", "gpu.nvidia.com", "a", podmap.SliceDevice{UUID: mig1, PCI: "0000:1d:00.0", Partition: true}, mig1, podmap.HowName},
		{"a partition without a UUID", "gpu.nvidia.com", "gpu-0-mig-3g40gb-9-4", podmap.SliceDevice{PCI: "0000:1d:00.0", Partition: true}, mig1, podmap.HowName},
		{"a partition that does not exist", "gpu.nvidia.com", "gpu-0-mig-3g40gb-9-4", podmap.SliceDevice{UUID: "MIG-5f1c9a1e-0003-0003-0003-000000000099", PCI: "0000:1d:00.0", Partition: true}, "", podmap.HowNone},
		{"a UUID that does not exist", "gpu.nvidia.com", "gpu-2", podmap.SliceDevice{UUID: "GPU-5f1c9a1e-0003-0003-0003-000000000099"}, "", podmap.HowNone},
		{"a UUID that does not exist with an address that does", "gpu.nvidia.com", "x", podmap.SliceDevice{UUID: "GPU-5f1c9a1e-0003-0003-0003-000000000099", PCI: "0000:1C:00.0"}, gpuB, podmap.HowName},
		{"an address", "gpu.amd.com", "x", podmap.SliceDevice{PCI: "0000:c1:00.0"}, "0000:c1:00.0", podmap.HowName},
		{"an address of another function", "fpga.example.com", "x", podmap.SliceDevice{PCI: "0000:86:00.0"}, "u250", podmap.HowName},
		{"a UUID of an unknown form", "gpu.nvidia.com", "gpu-2", podmap.SliceDevice{UUID: "3"}, gpuA, podmap.HowName},
		{"an address of an unknown form", "gpu.nvidia.com", "gpu-2", podmap.SliceDevice{PCI: "pci0000:1b"}, gpuA, podmap.HowName},
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
