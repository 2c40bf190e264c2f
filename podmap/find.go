package podmap

import (
	"slices"
	"strings"

	"github.com/accel-exporter/accel-exporter/collector"
)

// find looks for ref by what its form names.
func (x *Index) find(resource string, ref Ref) (int, How) {
	if i := lookup(x.ids, baseID(ref)); i >= 0 && (ref.global() || collector.IsResourceOf(x.devices[i].Vendor, resource)) {
		return i, HowID
	}
	switch ref.Form {
	case FormPCI:
		if i := lookup(x.pci, ref.PCI); i != none {
			return i, HowPCI
		}
		return lookup(x.functions, ref.PCI), HowFunction
	case FormName:
		return x.byName(ref), HowName
	case FormMinor:
		return x.only(func(d *Known) bool { return d.Parent == "" && d.Minor == ref.Minor && d.Vendor == "nvidia" }), HowMinor
	case FormInstance, FormMIGLegacy:
		return x.only(func(d *Known) bool { return x.isInstance(d, ref) }), HowInstance
	case FormProfile:
		return x.only(func(d *Known) bool { return x.isProfile(d, ref) }), HowProfile
	case FormHash:
		return lookup(x.hashes, ref.Hash), HowHash
	case FormIndex:
		if !numbersDevices(resource) {
			return lookup(x.names, "vfio/"+ref.Index), HowName
		}
		if i := x.only(func(d *Known) bool {
			return d.Parent == "" && d.Index == ref.Index && collector.IsResourceOf(d.Vendor, resource)
		}); i != none {
			return i, HowIndex
		}
		return x.only(func(d *Known) bool {
			return d.Parent == "" && d.Vendor != "nvidia" && collector.IsResourceOf(d.Vendor, resource)
		}), HowSole
	case FormSole:
		return x.only(func(d *Known) bool { return d.Parent == "" && d.Vendor == "nvidia" }), HowSole
	case FormUnknown:
		return none, HowUnknown
	}
	return none, HowNone
}

// numbersDevices reports whether a bare number can be the index of a device
// under the name of the resource. KubeVirt's device plugin names devices by the
// number of their IOMMU group and resources by their model; RDMA plugins number
// ports.
func numbersDevices(resource string) bool {
	_, name, _ := strings.Cut(strings.ToLower(resource), "/")
	return slices.ContainsFunc([]string{"gpu", "mig", "fpga"}, func(word string) bool { return strings.Contains(name, word) })
}

func (x *Index) byName(ref Ref) int {
	i, second := lookup(x.names, ref.Name), lookup(x.names, ref.Render)
	switch {
	case i == none:
		return second
	case second != none && second != i:
		return several
	}
	return i
}

func (x *Index) isInstance(d *Known, ref Ref) bool {
	if d.Parent == "" || d.GI == "" || d.GI != ref.GI {
		return false
	}
	if ref.Form == FormMIGLegacy {
		return d.Parent == ref.UUID && d.CI == ref.CI
	}
	return x.minorOf(d.Parent) == ref.Minor
}

func (x *Index) isProfile(d *Known, ref Ref) bool {
	if d.Parent == "" || x.minorOf(d.Parent) != ref.Minor {
		return false
	}
	profile := DRAProfile(d.Profile)
	return profile != "" && profile == ref.Profile
}

// DRAProfile writes a MIG profile as NVIDIA's DRA driver does: 1g.10gb+me is
// 1g10gb-me.
func DRAProfile(profile string) string {
	profile = strings.NewReplacer(".", "", "+", "-").Replace(strings.ToLower(profile))
	return strings.Trim(profile, "-")
}

func (x *Index) minorOf(id string) string {
	if i := slices.IndexFunc(x.devices, func(d Known) bool { return d.ID == id && d.Vendor == "nvidia" }); i >= 0 {
		return x.devices[i].Minor
	}
	return ""
}

// only returns the one device that is meant.
func (x *Index) only(is func(*Known) bool) int {
	at := none
	for i := range x.devices {
		if is(&x.devices[i]) {
			if at != none {
				return several
			}
			at = i
		}
	}
	return at
}
