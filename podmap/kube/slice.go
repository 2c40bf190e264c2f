package kube

import "strconv"

// maxSliceDevices is more than the API server accepts in one slice (128).
const maxSliceDevices = 512

// maxAttribute is what the API server accepts as the text of an attribute, in
// bytes.
const maxAttribute = 64

// attributes says where an attribute of a device goes. Of several names for
// one thing the first that is there counts.
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

func (r *reader) pool(first byte, o *object) error {
	return r.scanner.object(first, func(key string, first byte) (err error) {
		switch key {
		case "name":
			_, err = r.text(first, maxName, &o.pool)
		case "generation":
			err = r.whole(first, &o.generation)
		case "resourceSliceCount":
			err = r.whole(first, &o.slices)
		default:
			err = r.skip(first)
		}
		return err
	})
}

// device reads one device of a slice: its attributes stand beside its name, or
// under basic in resource.k8s.io/v1beta1.
func (r *reader) device(first byte, o *object) error {
	var d Device
	values := map[string]string{}
	var field func(key string, first byte) error
	field = func(key string, first byte) (err error) {
		switch key {
		case "name":
			_, err = r.text(first, maxName, &d.Name)
		case "basic":
			err = r.scanner.object(first, func(key string, first byte) error {
				if key != "attributes" {
					return r.skip(first)
				}
				return field(key, first)
			})
		case "attributes":
			err = r.scanner.object(first, func(key string, first byte) error { return r.attribute(key, first, values, o) })
		default:
			err = r.skip(first)
		}
		return err
	}
	if err := r.scanner.object(first, field); err != nil {
		return err
	}
	switch {
	case d.Name == "":
		o.malformed++
		return nil
	case len(o.devices) == maxSliceDevices:
		o.overflow++
		return nil
	}
	for _, a := range attributes {
		if to := a.field(&d); *to == "" {
			*to = values[a.name]
		}
	}
	o.devices = append(o.devices, d)
	return nil
}

// attribute reads {"string": "x"}, {"int": 1}, {"version": "1.0.0"} of a name
// that is looked for.
func (r *reader) attribute(name string, first byte, values map[string]string, o *object) error {
	if !wanted(name) {
		return r.skip(first)
	}
	return r.scanner.object(first, func(key string, first byte) error {
		switch {
		case key == "int":
			n := int64(-1)
			err := r.whole(first, &n)
			if n >= 0 {
				values[name] = strconv.FormatInt(n, 10)
			}
			return err
		case key == "string" || key == "version":
			var text string
			ok, err := r.text(first, maxAttribute, &text)
			if ok {
				values[name] = text
			} else if err == nil {
				o.malformed++
			}
			return err
		}
		return r.skip(first)
	})
}

func wanted(name string) bool {
	for _, a := range attributes {
		if a.name == name {
			return true
		}
	}
	return false
}
