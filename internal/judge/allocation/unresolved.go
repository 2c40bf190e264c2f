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

// isGone reports whether such an id names a device in full: it then means none
// of the known devices.
func isGone(form podmap.Form, how podmap.How) bool {
	switch form {
	case podmap.FormUUID, podmap.FormMIG, podmap.FormMIGLegacy, podmap.FormPCI, podmap.FormMinor, podmap.FormInstance:
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
		if !isAccelerator(x.resource) {
			if isModel(x.resource, st.model) {
				return true
			}
			continue
		}
		if vendor := collector.ResourceVendor(x.resource); vendor == "" || st.vendor == "" || vendor == st.vendor {
			return true
		}
	}
	return false
}

// isAccelerator reports whether the name of a resource is an accelerator's. A
// generic device plugin uses names that its operator chooses.
func isAccelerator(resource string) bool {
	return slices.ContainsFunc(acceleratorWords, func(word string) bool { return strings.Contains(resource, word) })
}

var acceleratorWords = func() []string {
	words := []string{"gpu", "fpga", "accel"}
	for _, v := range collector.Vendors() {
		for _, d := range v.Domains {
			if len(d) <= 3 {
				d += "." // amd is part of amd64
			}
			words = append(words, d)
		}
	}
	return words
}()

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
// name means the same partition for as long as that exists. It returns how
// many names were resolved.
func (j *join) eliminate(counted map[idKey]bool) int {
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
	found := map[idKey]bool{}
	for _, p := range j.ambiguous {
		f := j.resolve(p.Resource, &p.Ref, p.DeviceID)
		key := idKey{p.Resource, p.DeviceID}
		if st := j.placed[key]; st != nil {
			f.device, found[key] = st, true
		}
		j.enter(p, f, counted)
	}
	return len(found)
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
