package collector

import (
	"slices"
	"strings"
)

// find returns the ID of the device at a PCI address, or "".
func (s *Sampler) find(pci string) string {
	found := ""
	for _, st := range s.sources {
		for id, ds := range st.devices {
			d := &ds.device
			if d.Parent == "" && (d.PCI == pci || slices.Contains(d.Functions, pci)) {
				if !d.Witness {
					return id
				}
				found = id
			}
		}
	}
	return found
}

// partition returns the ID of the only partition at a place of a device (see
// Event.Place), or "".
func (s *Sampler) partition(device, place string) string {
	name, found := "MIG-"+device+"/"+place, ""
	for _, st := range s.sources {
		for id, ds := range st.devices {
			if d := &ds.device; d.Parent != device || !slices.ContainsFunc(append([]string{id}, d.KubeIDs...), func(known string) bool {
				return known == name || strings.HasPrefix(known, name+"/")
			}) {
				continue
			}
			if found != "" && found != id {
				return "" // a GPU instance with several compute instances
			}
			found = id
		}
	}
	return found
}

// has reports whether a source has a device of that ID.
func (s *Sampler) has(id string) bool {
	return slices.ContainsFunc(s.sources, func(st *sourceState) bool { return st.devices[id] != nil })
}
