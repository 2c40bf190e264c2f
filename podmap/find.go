package podmap

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/accel-exporter/accel-exporter/collector"
)

// find looks for ref by what its form names.
func (x *Index) find(resource string, ref Ref) (int, How) {
	if i := lookup(x.ids, baseID(ref)); i >= 0 && (ref.global() || collector.IsResourceOf(x.devices[i].Vendor, resource)) {
		return i, HowName
	}
	switch ref.Form {
	case FormPCI:
		return x.byAddress(ref.PCI), HowName
	case FormName:
		return x.byName(ref), HowName
	case FormMinor:
		return x.only(func(d *Known) bool { return d.Parent == "" && d.minor == ref.Minor && d.Vendor == "nvidia" }), HowName
	case FormInstance, FormMIGLegacy:
		return x.only(func(d *Known) bool { return x.isInstance(d, ref) }), HowName
	case FormProfile:
		return x.only(func(d *Known) bool { return x.isProfile(d, ref) }), HowName
	case FormHash:
		return lookup(x.hashes, ref.Hash), HowName
	case FormOrder:
		return x.inOrder(ref.Index), HowName
	case FormIndex:
		if !NumbersDevices(resource) {
			return x.ofGroup(resource, ref.Index), HowName
		}
		if i := x.only(func(d *Known) bool {
			return d.Parent == "" && d.Index == ref.Index && collector.IsResourceOf(d.Vendor, resource) && !x.isPartitioned(d.ID)
		}); i != none {
			return i, HowIndex
		}
		if i := x.ofGroup(resource, ref.Index); i != none {
			return i, HowName
		}
		return x.only(func(d *Known) bool {
			return d.Parent == "" && d.Vendor != "nvidia" && collector.IsResourceOf(d.Vendor, resource)
		}), HowName
	case FormSole:
		return x.only(func(d *Known) bool { return d.Parent == "" && d.Vendor == "nvidia" }), HowName
	case FormUnknown:
		return none, HowUnknown
	}
	return none, HowNone
}

// NumbersDevices reports whether a bare number can be the index of a device
// under the name of the resource: gpu and fpga-u250, not pgpu. The device
// plugins of KubeVirt and Kata Containers name a device by the number of its
// IOMMU group, under nvidia.com/pgpu or its model; RDMA plugins number ports.
func NumbersDevices(resource string) bool {
	_, name, _ := strings.Cut(strings.ToLower(resource), "/")
	for word := range strings.FieldsFuncSeq(name, func(r rune) bool { return r < 'a' || r > 'z' }) {
		if slices.Contains([]string{"gpu", "mig", "fpga"}, word) {
			return true
		}
	}
	return false
}

// ofGroup returns the device of the resource's vendor that a kernel driver
// reserves as the IOMMU group.
func (x *Index) ofGroup(resource, group string) int {
	if i := lookup(x.names, "vfio/"+group); i >= 0 && collector.IsResourceOf(x.devices[i].Vendor, resource) {
		return i
	}
	return none
}

// inOrder returns the GPU of NVIDIA with the number in order of the PCI
// addresses, from 0.
func (x *Index) inOrder(number string) int {
	var addresses []string
	for i := range x.devices {
		if d := &x.devices[i]; d.Parent == "" && d.Vendor == "nvidia" {
			pci, _ := normalPCI(d.PCI)
			addresses = append(addresses, pci)
		}
	}
	slices.SortFunc(addresses, func(a, b string) int { return cmp.Or(len(a)-len(b), strings.Compare(a, b)) })
	n, err := strconv.Atoi(number)
	if err != nil || n >= len(addresses) || addresses[0] == "" {
		return none
	}
	return lookup(x.pci, addresses[n])
}

// byAddress returns the device with the address, or with a function at it.
func (x *Index) byAddress(pci string) int {
	if i := lookup(x.pci, pci); i != none {
		return i
	}
	return lookup(x.functions, pci)
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

// isPartitioned reports whether a device has partitions, which are allocated in its place.
func (x *Index) isPartitioned(id string) bool {
	return slices.ContainsFunc(x.devices, func(d Known) bool { return d.Parent == id })
}

func (x *Index) minorOf(id string) string {
	if i := slices.IndexFunc(x.devices, func(d Known) bool { return d.ID == id && d.Vendor == "nvidia" }); i >= 0 {
		return x.devices[i].minor
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
