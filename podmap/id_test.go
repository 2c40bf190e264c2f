package podmap_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/accel-exporter/accel-exporter/podmap"
)

const uuid = "5f1c9a1e-0001-4abc-8def-0123456789ab"

// ids are device ids of every form, with their parsed form.
var ids = []struct {
	id   string
	dra  string     // the DRA driver; empty for an id of a device plugin
	want podmap.Ref // an empty ID means id
}{
	{id: "GPU-" + uuid, want: podmap.Ref{Form: podmap.FormUUID, UUID: "GPU-" + uuid}},
	{id: "GPU-" + strings.ToUpper(uuid), want: podmap.Ref{Form: podmap.FormUUID, ID: "GPU-" + uuid, UUID: "GPU-" + uuid}},
	{id: "GPU-" + uuid + "::3", want: podmap.Ref{Form: podmap.FormUUID, UUID: "GPU-" + uuid, Replica: "3"}},
	{id: "GPU-" + uuid + "-7", want: podmap.Ref{Form: podmap.FormUUID, UUID: "GPU-" + uuid, Replica: "7", Nominal: true}},
	{id: "GPU-" + uuid + "-_-7", want: podmap.Ref{Form: podmap.FormUUID, UUID: "GPU-" + uuid, Replica: "7", Nominal: true}},
	{id: "nvidia.com/gpu=GPU-" + uuid, want: podmap.Ref{Form: podmap.FormUUID, ID: "GPU-" + uuid, UUID: "GPU-" + uuid}},
	{id: "nvidia.com/gpu=MIG-" + uuid + "::1", want: podmap.Ref{Form: podmap.FormMIG, ID: "MIG-" + uuid + "::1", UUID: "MIG-" + uuid, Replica: "1"}},
	{id: "amd.com/gpu=0", want: podmap.Ref{Form: podmap.FormIndex, ID: "0", Index: "0"}},
	{id: "MIG-" + uuid, want: podmap.Ref{Form: podmap.FormMIG, UUID: "MIG-" + uuid}},
	{id: "MIG-" + uuid + "::0", want: podmap.Ref{Form: podmap.FormMIG, UUID: "MIG-" + uuid, Replica: "0"}},
	{id: "MIG-GPU-" + uuid + "/1/0", want: podmap.Ref{Form: podmap.FormMIGLegacy, UUID: "GPU-" + uuid, GI: "1", CI: "0"}},
	{id: "MIG-GPU-" + uuid + "/13/0::1", want: podmap.Ref{Form: podmap.FormMIGLegacy, UUID: "GPU-" + uuid, GI: "13", CI: "0", Replica: "1"}},
	{id: "nvidia0", want: podmap.Ref{Form: podmap.FormMinor, Minor: "0"}},
	{id: "nvidia12/vgpu3", want: podmap.Ref{Form: podmap.FormMinor, Minor: "12", Replica: "3"}},
	{id: "nvidia0/gi7", want: podmap.Ref{Form: podmap.FormInstance, Minor: "0", GI: "7"}},
	{id: "nvidia0/gi7/vgpu1", want: podmap.Ref{Form: podmap.FormInstance, Minor: "0", GI: "7", Replica: "1"}},
	{id: "/dev/nvidia3", want: podmap.Ref{Form: podmap.FormMinor, Minor: "3"}},
	{id: "tegra", want: podmap.Ref{Form: podmap.FormSole}},
	{id: "0000:5e:00.1", want: podmap.Ref{Form: podmap.FormPCI, PCI: "0000:5e:00.1"}},
	{id: "5E:00.1", want: podmap.Ref{Form: podmap.FormPCI, ID: "0000:5e:00.1", PCI: "0000:5e:00.1"}},
	{id: "00000000:5E:00.0", want: podmap.Ref{Form: podmap.FormPCI, ID: "0000:5e:00.0", PCI: "0000:5e:00.0"}},
	{id: "10000:e1:00.0", want: podmap.Ref{Form: podmap.FormPCI, PCI: "10000:e1:00.0"}},
	{id: "0000:5e:00.1-4", want: podmap.Ref{Form: podmap.FormPCI, PCI: "0000:5e:00.1", Replica: "4", Nominal: true}},
	{id: "0000:03:00.0-slice-2", want: podmap.Ref{Form: podmap.FormPCI, ID: "0000:03:00.0::2", PCI: "0000:03:00.0", Replica: "2"}},
	{id: "amdgpu_xcp_30", want: podmap.Ref{Form: podmap.FormName, Name: "amdgpu_xcp_30"}},
	{id: "card0-1", want: podmap.Ref{Form: podmap.FormName, Name: "card0", Replica: "1"}},
	{id: "card1", want: podmap.Ref{Form: podmap.FormName, Name: "card1"}},
	{id: "renderD128", want: podmap.Ref{Form: podmap.FormName, Name: "renderD128"}},
	{id: "dfl-port.0", want: podmap.Ref{Form: podmap.FormName, Name: "dfl-port.0"}},
	{id: "dfl-fme.11", want: podmap.Ref{Form: podmap.FormName, Name: "dfl-fme.11"}},
	{id: "intel-fpga-port.0", want: podmap.Ref{Form: podmap.FormName, Name: "intel-fpga-port.0"}},
	{id: "intel-fpga-fme.0", want: podmap.Ref{Form: podmap.FormName, Name: "intel-fpga-fme.0"}},
	{id: "/dev/dri/renderD129", want: podmap.Ref{Form: podmap.FormName, Name: "renderD129"}},
	{id: "/dev/ami0", want: podmap.Ref{Form: podmap.FormName, Name: "ami0"}},
	{id: "1", want: podmap.Ref{Form: podmap.FormIndex, Index: "1"}},
	{id: "0a4d55a8d778e5022fab701977c5d840bbc486d0", want: podmap.Ref{Form: podmap.FormHash, Hash: "0a4d55a8d778e5022fab701977c5d840bbc486d0"}},

	{id: "gpu-3", dra: "gpu.nvidia.com", want: podmap.Ref{Form: podmap.FormMinor, Minor: "3"}},
	{id: "gpu-0-mig-1g10gb-19-2", dra: "gpu.nvidia.com", want: podmap.Ref{Form: podmap.FormProfile, Minor: "0", Profile: "1g10gb"}},
	{id: "gpu-0-mig-1g10gb-me-20-2", dra: "gpu.nvidia.com", want: podmap.Ref{Form: podmap.FormProfile, Minor: "0", Profile: "1g10gb-me"}},
	{id: "gpu-0-mig-19-2-1", dra: "gpu.nvidia.com", want: podmap.Ref{Form: podmap.FormProfile, Minor: "0"}},
	{id: "gpu-1-129", dra: "gpu.amd.com", want: podmap.Ref{Form: podmap.FormName, Name: "card1", Render: "renderD129"}},
	{id: "0000-03-00-0-0x56c0", dra: "gpu.intel.com", want: podmap.Ref{Form: podmap.FormPCI, PCI: "0000:03:00.0"}},
	{id: "GPU-" + uuid, dra: "gpu.nvidia.com", want: podmap.Ref{Form: podmap.FormUUID, UUID: "GPU-" + uuid}},
	{id: "gpu-vfio-0", dra: "gpu.nvidia.com", want: podmap.Ref{Form: podmap.FormOrder, Index: "0"}},
	{id: "gpu-vfio-0", dra: "gpu.amd.com", want: podmap.Ref{Form: podmap.FormUnknown}},
	{id: strings.ToUpper(uuid), want: podmap.Ref{Form: podmap.FormMediated, ID: uuid}},

	{id: "gpu-3", dra: "gpu.example.com", want: podmap.Ref{Form: podmap.FormUnknown}},
	{id: "gpu-1-129", dra: "gpu.nvidia.com", want: podmap.Ref{Form: podmap.FormUnknown}},

	{id: "", want: podmap.Ref{Form: podmap.FormUnknown}},
	{id: "gpu-3", want: podmap.Ref{Form: podmap.FormUnknown}},
	{id: "GPU-" + uuid[1:], want: podmap.Ref{Form: podmap.FormUnknown}},
	{id: "GPU-" + uuid + "::x", want: podmap.Ref{Form: podmap.FormUnknown}},
	{id: "GPU-" + uuid + "-1::2", want: podmap.Ref{Form: podmap.FormUnknown}},
	{id: "GPU-" + uuid + "::01", want: podmap.Ref{Form: podmap.FormUnknown}},
	{id: "MIG-GPU-" + uuid + "/1", want: podmap.Ref{Form: podmap.FormUnknown}},
	{id: "nvidia", want: podmap.Ref{Form: podmap.FormUnknown}},
	{id: "nvidia0/gi0/vgpu0/x", want: podmap.Ref{Form: podmap.FormUnknown}},
	{id: "0000:5e:20.0", want: podmap.Ref{Form: podmap.FormUnknown}},
	{id: "0000:5e:00.8", want: podmap.Ref{Form: podmap.FormUnknown}},
	{id: "dfl-port.", want: podmap.Ref{Form: podmap.FormUnknown}},
	{id: "dfl-port.0-1", want: podmap.Ref{Form: podmap.FormUnknown}},
	{id: "/dev/../etc/passwd", want: podmap.Ref{Form: podmap.FormUnknown}},
	{id: "nvidia.com/gpu=all", want: podmap.Ref{Form: podmap.FormUnknown}},
	{id: "nvidia/gpu=GPU-" + uuid, want: podmap.Ref{Form: podmap.FormUnknown}},
	{id: "kvm0", want: podmap.Ref{Form: podmap.FormUnknown}},
	{id: strings.Repeat("7", 600), want: podmap.Ref{Form: podmap.FormUnknown}},
}

func parse(id, driver string) podmap.Ref {
	if driver != "" {
		return podmap.ParseDRA(driver, id)
	}
	return podmap.ParseID(id)
}

func TestParse(t *testing.T) {
	for _, c := range ids {
		if c.want.ID == "" {
			c.want.ID = c.id
		}
		if diff := cmp.Diff(c.want, parse(c.id, c.dra)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", c.id, diff)
		}
	}
}

// FuzzParseID: parsing the normal spelling of any id returns the same Ref.
func FuzzParseID(f *testing.F) {
	for _, c := range ids {
		f.Add(c.id, c.dra)
	}
	f.Fuzz(func(t *testing.T, id, dra string) {
		r := parse(id, dra)
		if r.Form == "" {
			t.Fatalf("%q has no form", id)
		}
		if again := parse(r.ID, dra); again != r {
			t.Fatalf("%q is %+v, and %q is %+v", id, r, r.ID, again)
		}
		if r.Form == podmap.FormUnknown && r != (podmap.Ref{Form: podmap.FormUnknown, ID: id}) {
			t.Fatalf("%q of unknown form is %+v", id, r)
		}
		if r.Nominal && r.Replica == "" {
			t.Fatalf("%q is nominal without a replica: %+v", id, r)
		}
	})
}
