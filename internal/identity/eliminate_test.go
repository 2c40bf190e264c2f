package identity

import (
	"slices"
	"testing"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/podmap"
)

// TestByElimination: the only GPU without a UUID has the only UUID of the kubelet
// that no GPU has; with several of either, nothing is guessed.
func TestByElimination(t *testing.T) {
	const (
		x = "GPU-11111111-2222-3333-4444-555555555555"
		y = "GPU-22222222-2222-3333-4444-555555555555"
		z = "GPU-33333333-2222-3333-4444-555555555555"
	)
	whole := func(id, pci string) collector.Device {
		return collector.Device{ID: id, PCI: pci, Class: collector.GPU, Vendor: "nvidia"}
	}
	silent, other, index := whole(a, a), whole(b, b), whole("nvidia1", "")
	guest, foreign := other, other
	guest.Driver, foreign.Vendor = "vfio-pci", "amd"
	held := func(resource string, ids ...string) *podmap.Map {
		m := &podmap.Map{}
		for _, id := range ids {
			m.Allocations = append(m.Allocations, podmap.Allocation{Resource: resource, DeviceID: id, Ref: podmap.ParseID(id)})
		}
		return m
	}
	free := &podmap.Map{Allocatable: []podmap.Allocatable{{Resource: "nvidia.com/gpu", IDs: []string{x, y + "::0", y + "::1"}}}}
	const resource = "nvidia.com/gpu"
	for name, c := range map[string]struct {
		devices []collector.Device
		kubelet *podmap.Map
		down    bool // the source
		want    string
	}{
		"held":                 {devices: []collector.Device{whole(x, b), silent}, kubelet: held(resource, x, y), want: y},
		"shared by two pods":   {devices: []collector.Device{whole(x, b), silent}, kubelet: held(resource, y+"::0", y+"::1"), want: y},
		"allocatable":          {devices: []collector.Device{whole(x, b), silent}, kubelet: free, want: y},
		"two GPUs":             {devices: []collector.Device{whole(x, "0000:3d:00.0"), silent, other}, kubelet: held(resource, x, y)},
		"two UUIDs":            {devices: []collector.Device{whole(x, b), silent}, kubelet: held(resource, x, y, z)},
		"no UUID":              {devices: []collector.Device{whole(x, b), silent}, kubelet: held(resource, x)},
		"no GPU":               {devices: []collector.Device{whole(x, b)}, kubelet: held(resource, x, y)},
		"no address":           {devices: []collector.Device{whole(x, b), index}, kubelet: held(resource, x, y)},
		"a MIG device":         {devices: []collector.Device{whole(x, b), silent}, kubelet: held(resource, "MIG-22222222-2222-3333-4444-555555555555")},
		"another vendor's":     {devices: []collector.Device{whole(x, b), silent}, kubelet: held("amd.com/gpu", y)},
		"a GPU of a guest":     {devices: []collector.Device{guest, silent}, kubelet: held(resource, y), want: y},
		"a GPU of AMD":         {devices: []collector.Device{foreign, silent}, kubelet: held(resource, y), want: y},
		"the source is not up": {devices: []collector.Device{silent}, kubelet: held(resource, y), down: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := &collector.Snapshot{Devices: c.devices, Sources: []collector.Status{{Source: "nvidia", Up: !c.down}}}
			for range 2 {
				d, ok := ByElimination(s, c.kubelet)
				if d.ID = ifTrue(ok, d.ID); d.ID != c.want || ok && (d.PCI != a || d.Vendor != "nvidia" || !slices.Equal(d.KubeIDs, []string{c.want})) {
					t.Errorf("%+v, %v; want %q", d, ok, c.want)
				}
				slices.Reverse(s.Devices)
			}
		})
	}
}

func ifTrue(ok bool, s string) string {
	if !ok {
		return ""
	}
	return s
}
