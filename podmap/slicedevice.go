package podmap

// Described is what a DRA driver says of a device in its ResourceSlice, which
// only the API server tells. What is not known is empty.
type SliceDevice struct {
	// UUID is the device's, as NVIDIA writes it; any other is not looked at.
	UUID string
	// PCI is the device's address; of a partition, that of its parent.
	PCI       string
	Partition bool
}

// ResolveDRA returns the ID of the device that a hold on a claim's device is
// about, or no id and why not. What its driver says of the device counts more
// than the name that the driver gave it, and Resolver's lists more than either.
func (x *Index) ResolveDRA(h Allocation, said SliceDevice) (id string, how How) {
	id, how = x.Resolve(h.Resource, h.Ref)
	if how == HowAlias || how == HowIgnored {
		return id, how
	}
	if said.Partition {
		said.PCI = ""
	}
	understood := false
	for _, text := range []string{said.UUID, said.PCI} {
		ref := ParseID(text)
		switch ref.Form {
		case FormUUID, FormMIG, FormMIGLegacy, FormPCI:
			understood = true
			if i, by := x.find(h.Resource, ref); i != none {
				return x.found(i, by)
			}
		}
	}
	if understood {
		return "", HowNone // whatever the name would fit
	}
	return id, how
}
