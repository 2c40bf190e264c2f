package kube

import "strconv"

// maxSliceDevices is more than the API server accepts in one slice (128).
const maxSliceDevices = 512

// maxAttribute is the longest text of an attribute that the API server accepts,
// in bytes.
const maxAttribute = 64

// attributes lists the names of attributes by the field of Device that they
// fill. Of several names the first one present counts.
var attributes = []struct {
	name  string
	field func(*Device) *string
}{
	{"type", func(d *Device) *string { return &d.Type }},
	{"uuid", func(d *Device) *string { return &d.UUID }},
	{"parentUUID", func(d *Device) *string { return &d.ParentUUID }},
	{"resource.kubernetes.io/pciBusID", func(d *Device) *string { return &d.PCI }},
	{"pcieBusID", func(d *Device) *string { return &d.PCI }},
	{"pciBusID", func(d *Device) *string { return &d.PCI }},
	{"pciAddress", func(d *Device) *string { return &d.PCI }},
	{"pciAddr", func(d *Device) *string { return &d.PCI }},
	{"minor", func(d *Device) *string { return &d.Minor }},
	{"parentMinor", func(d *Device) *string { return &d.ParentMinor }},
	{"index", func(d *Device) *string { return &d.Index }},
	{"profile", func(d *Device) *string { return &d.Profile }},
	{"productName", func(d *Device) *string { return &d.Model }},
	{"model", func(d *Device) *string { return &d.Model }},
}

// sliceDevice is one device of a ResourceSlice. resource.k8s.io/v1beta1 has the
// attributes under basic.
type sliceDevice struct {
	Name       string               `json:"name"`
	Attributes map[string]attribute `json:"attributes"`
	Basic      *struct {
		Attributes map[string]attribute `json:"attributes"`
	} `json:"basic"`
}

// attribute is {"string": "x"}, {"int": 1} or {"version": "1.0.0"}.
type attribute struct {
	String  *string `json:"string"`
	Version *string `json:"version"`
	Int     *int64  `json:"int"`
}

// text returns the value of the attribute, "" if it has none of these types or
// the number is negative. ok is false for a text beyond its bound.
func (a attribute) text() (text string, ok bool) {
	switch {
	case a.Int != nil && *a.Int >= 0:
		return strconv.FormatInt(*a.Int, 10), true
	case a.String != nil:
		text = *a.String
	case a.Version != nil:
		text = *a.Version
	}
	return short(text, maxAttribute), len(text) <= maxAttribute
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
		if in.Basic != nil {
			o.keepAttributes(&d, in.Basic.Attributes)
		}
		o.keepAttributes(&d, in.Attributes)
		o.devices = append(o.devices, d)
	}
}

func (o *object) keepAttributes(d *Device, values map[string]attribute) {
	for _, a := range attributes {
		text, ok := values[a.name].text()
		if !ok {
			o.malformed++
		}
		if to := a.field(d); *to == "" {
			*to = text
		}
	}
}
