package kube

import "cmp"

// maxSliceDevices is more than the API server accepts in one slice (128).
const maxSliceDevices = 512

// maxAttribute is the longest text of an attribute that the API server accepts,
// in bytes.
const maxAttribute = 64

// sliceDevice is one device of a ResourceSlice. resource.k8s.io/v1beta1 has the
// attributes under basic.
type sliceDevice struct {
	Name       string               `json:"name"`
	Attributes map[string]attribute `json:"attributes"`
	Basic      *struct {
		Attributes map[string]attribute `json:"attributes"`
	} `json:"basic"`
}

// attribute is {"string": "x"}, or of another type and not read.
type attribute struct {
	String string `json:"string"`
}

// keepDevices keeps the devices of a slice that have a name.
func (o *object) keepDevices(list []sliceDevice) {
	for _, in := range list {
		d := Device{Name: short(in.Name, maxName)}
		switch {
		case d.Name == "":
			o.malformed++
			continue
		case len(o.devices) == maxSliceDevices:
			o.overflow++
			continue
		}
		values := in.Attributes
		if in.Basic != nil {
			values = in.Basic.Attributes
		}
		d.UUID, d.ParentUUID = o.first(values, "uuid"), o.first(values, "parentUUID")
		d.PCI = o.first(values, "resource.kubernetes.io/pciBusID", "pcieBusID", "pciBusID", "pciAddress", "pciAddr")
		o.devices = append(o.devices, d)
	}
}

// first returns the first of the attributes that is present. An attribute that is too
// long is not.
func (o *object) first(values map[string]attribute, names ...string) (text string) {
	for _, n := range names {
		s := values[n].String
		if len(s) > maxAttribute {
			o.malformed++
		}
		text = cmp.Or(text, short(s, maxAttribute))
	}
	return text
}
