package podmap

// SliceDevice identifies a device by what its DRA driver publishes in a
// ResourceSlice. An unknown value is empty.
type SliceDevice struct {
	// UUID is in NVIDIA's form; any other form is ignored.
	UUID string
	// PCI is the device's address; of a partition, that of its parent.
	PCI       string
	Partition bool
}

// ResolveDRA returns the ID of the device that a claim's device is, or no id
// and the reason. Resolver's lists have precedence, then the published device,
// then its name.
func (x *Index) ResolveDRA(a Allocation, published SliceDevice) (id string, how How) {
	id, how = x.Resolve(a.Resource, a.Ref)
	if how == HowAlias || how == HowIgnored {
		return id, how
	}
	if published.Partition {
		published.PCI = ""
	}
	understood := false
	for _, text := range []string{published.UUID, published.PCI} {
		ref := ParseID(text)
		switch ref.Form {
		case FormUUID, FormMIG, FormMIGLegacy, FormPCI:
			understood = true
			if i, by := x.find(a.Resource, ref); i != none {
				return x.found(i, by)
			}
		}
	}
	if understood {
		return "", HowNone // the name does not count then
	}
	return id, how
}
