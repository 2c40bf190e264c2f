package allocation

import (
	"slices"
	"strings"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/podmap"
)

// unresolvedID is an allocated id that matches no device.
type unresolvedID struct {
	resource string
	ref      *podmap.Ref
}

// isGone reports whether the id names a device in full: it then means none of
// the known devices.
func (x unresolvedID) isGone(how podmap.How) bool {
	switch x.ref.Form {
	case podmap.FormIndex: // else an IOMMU group
		return how == podmap.HowNone && !podmap.NumbersDevices(x.resource)
	case podmap.FormUUID, podmap.FormMIG, podmap.FormMIGLegacy, podmap.FormPCI, podmap.FormMinor, podmap.FormInstance, podmap.FormOrder:
		return how == podmap.HowNone
	}
	return false
}

// mayBeAllocated reports whether an unresolved id may mean the device.
func (j *join) mayBeAllocated(st *device) bool {
	for _, x := range j.candidates {
		if x.ref.Form == podmap.FormProfile {
			if j.isProfile(st, x.ref) {
				return true
			}
			continue
		}
		if x.isKindOf(st) || isModel(x.resource, st.model) {
			return true
		}
	}
	return false
}

// isMissing reports whether an unresolved id means an accelerator that the
// exporter should know: its resource names a kind of device that this node has.
func (j *join) isMissing(x unresolvedID) bool {
	// A network card is named by its PCI address, also under nvidia.com.
	return x.ref.Form != podmap.FormPCI && slices.ContainsFunc(j.order, x.isKindOf)
}

// isKindOf reports whether the name of the resource is of devices such as st. The
// vendor alone is no proof: vendors of accelerators also sell network cards and
// processors with graphics.
func (x unresolvedID) isKindOf(st *device) bool {
	if x.ref.Form == podmap.FormMediated {
		return false // a vGPU
	}
	if vendor := collector.ResourceVendor(x.resource); vendor != "" && st.vendor != "" && vendor != st.vendor {
		return false
	}
	for _, node := range []string{"card", "renderD"} {
		// The kernel's name of another DRM device than st, such as the graphics of a
		// processor.
		if strings.HasPrefix(x.ref.Name, node) && slices.ContainsFunc(st.kubeIDs, func(id string) bool { return strings.HasPrefix(id, node) }) {
			return false
		}
	}
	for _, k := range kinds {
		if strings.Contains(x.resource, k.word) {
			return k.class == "" || k.class == st.class
		}
	}
	return false
}

// kinds are words in the names of resources and DRA drivers, with the class of
// the devices: any class if it is empty.
var kinds = []struct {
	word  string
	class collector.Class
}{
	{"npu", "npu"}, // not covered
	{"fpga", collector.FPGA},
	{"xilinx", collector.FPGA},
	{"gpu", collector.GPU},
	{"/mig-", collector.GPU},
	{"_nps", collector.GPU}, // amd.com/cpx_nps4
	{"accel", ""},
}

// isModel reports whether the name of a resource has a word of the model: a
// word with a digit, as in squat.ai/n6001.
func isModel(resource, model string) bool {
	_, name, _ := strings.Cut(strings.ToLower(resource), "/")
	words := strings.FieldsFunc(strings.ToLower(model), isMark)
	for word := range strings.FieldsFuncSeq(name, isMark) {
		if len(word) > 2 && strings.ContainsAny(word, "0123456789") && slices.Contains(words, word) {
			return true
		}
	}
	return false
}

func isMark(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') }

// isProfile reports whether a partition's name by its GPU, profile and place
// may mean st, whose place is unknown. NVIDIA's DRA driver uses such names.
func (j *join) isProfile(st *device, ref *podmap.Ref) bool {
	parent := j.devices[st.parent]
	if st.parent == "" || parent == nil || !slices.Contains(parent.kubeIDs, "nvidia"+ref.Minor) {
		return false
	}
	profile := podmap.DRAProfile(st.profile)
	return ref.Profile == "" || profile == "" || profile == ref.Profile
}

// eliminate finds the partitions of ambiguous names: if exactly as many
// partitions are left as there are names, and one pod has all those names. A
// name means the same partition for as long as that exists.
func (j *join) eliminate(counted map[idKey]bool) {
	for key, st := range j.placed {
		switch {
		case st != nil && j.devices[st.id] != st:
			j.placed[key] = nil // a pod still listed with the name has no other partition
		case st == nil && !slices.ContainsFunc(j.ambiguous, func(p *podmap.Allocation) bool { return key == idKey{p.Resource, p.DeviceID} }):
			delete(j.placed, key)
		}
	}
	rest := j.ambiguous
	for len(rest) > 0 {
		var of, others []*podmap.Allocation
		var names []string
		onePod := true
		for _, p := range rest {
			_, placed := j.placed[idKey{p.Resource, p.DeviceID}]
			switch {
			case p.Ref.Minor != rest[0].Ref.Minor || p.Ref.Profile != rest[0].Ref.Profile:
				others = append(others, p)
			case !placed:
				names = add(names, p.DeviceID)
				onePod = onePod && (len(of) == 0 || p.Pod == of[0].Pod)
				of = append(of, p)
			}
		}
		free := j.unallocated(&rest[0].Ref)
		if len(free) == len(names) && (len(names) == 1 || onePod) {
			for _, p := range of {
				at, _ := slices.BinarySearch(names, p.DeviceID)
				j.placed[idKey{p.Resource, p.DeviceID}] = free[at]
			}
		}
		rest = others
	}
	for _, p := range j.ambiguous {
		f := j.resolve(p.Resource, &p.Ref, p.DeviceID)
		if st := j.placed[idKey{p.Resource, p.DeviceID}]; st != nil {
			f.device = st
		}
		j.enter(p, f, counted)
	}
}

// unallocated returns the partitions that a name may mean, and that have
// neither another name nor an allocation.
func (j *join) unallocated(ref *podmap.Ref) []*device {
	taken := map[*device]bool{}
	for _, st := range j.placed {
		taken[st] = st != nil
	}
	var out []*device
	for _, st := range j.order {
		if j.isProfile(st, ref) && len(st.offered) == 0 && st.omitted == 0 && !taken[st] {
			out = append(out, st)
		}
	}
	return out
}
