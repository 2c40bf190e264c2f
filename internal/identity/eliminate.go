package identity

import (
	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/podmap"
)

// nvidia is the vendor whose devices the kubelet knows by UUID, and the source
// that reads them.
const nvidia = "nvidia"

// ByElimination finds the UUID of a GPU that has none, from the kubelet's list:
// if exactly one GPU has no UUID, and the kubelet has exactly one UUID that is
// of no GPU, they are the same. It never guesses among several.
func ByElimination(snap *collector.Snapshot, m *podmap.Map) (d collector.Device, ok bool) {
	up := false
	for i := range snap.Sources {
		up = up || snap.Sources[i].Source == nvidia && snap.Sources[i].Up
	}
	if !up {
		return d, false
	}
	known := map[string]bool{}
	for i := range snap.Devices {
		o := &snap.Devices[i]
		switch {
		case o.Class != collector.GPU || o.Vendor != nvidia || o.Parent != "" || o.Driver != "" && !collector.IsAcceleratorDriver(o.Driver):
		case podmap.ParseID(o.ID).Form == podmap.FormUUID:
			known[o.ID] = true
		case ok:
			return d, false
		default:
			ok = true
			d = collector.Device{Class: o.Class, Vendor: o.Vendor, PCI: o.PCI}
		}
	}
	if !ok || d.PCI == "" {
		return d, false
	}
	take := func(resource string, ref podmap.Ref) {
		switch {
		case ref.Form != podmap.FormUUID || known[ref.UUID] || ref.UUID == d.ID || !collector.IsResourceOf(nvidia, resource):
		case d.ID != "":
			ok = false
		default:
			d.ID, d.KubeIDs = ref.UUID, []string{ref.UUID}
		}
	}
	for i := range m.Allocations {
		take(m.Allocations[i].Resource, m.Allocations[i].Ref)
	}
	for _, a := range m.Allocatable {
		for _, id := range a.IDs {
			take(a.Resource, podmap.ParseID(id))
		}
	}
	return d, ok && d.ID != ""
}
