package baseline

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/accel-exporter/accel-exporter/collector"
)

// The sections of Approved.
const (
	sectionDriver    = "driver"
	sectionCUDA      = "cuda"
	sectionModule    = "module"
	sectionMIG       = "mig"
	sectionFirmware  = "firmware"
	sectionBitstream = "bitstream"
	sectionRootKey   = "root_key"
)

// view is a device with the properties that follow from its readings.
type view struct {
	*collector.Device
	pciID string
	up    bool // the device answers
}

func look(d *collector.Device) view {
	v := view{Device: d}
	for i := range d.Readings {
		switch r := &d.Readings[i]; r.Metric {
		case collector.DeviceUp:
			v.up = v.up || r.Value == 1
		case collector.FPGAInfo:
			v.pciID = cmp.Or(r.Label("pci_id"), v.pciID)
		case collector.PCIeFunctionInfo:
			vendor, device := strings.TrimPrefix(r.Label("vendor_id"), "0x"), strings.TrimPrefix(r.Label("device_id"), "0x")
			if r.Label("pci_address") == v.PCI && vendor != "" && device != "" {
				v.pciID = cmp.Or(v.pciID, vendor+":"+device)
			}
		}
	}
	return v
}

// fact is one value of a component.
type fact struct {
	section string
	// name is the key in the table of the section: vbios, port0/afu. It is empty
	// for a section without a table.
	name  string
	value string
}

// component returns the label component of the fact.
func (f *fact) component() string {
	switch f.section {
	case sectionFirmware, sectionBitstream:
		return f.name
	case sectionRootKey:
		return sectionRootKey + "/" + f.name
	}
	return f.section
}

// facts returns the known components of the device. Values that were not read
// now are omitted: values of a device that does not answer, or of a region that
// is empty or being configured.
func (v *view) facts(node []collector.Reading) []fact {
	var out []fact
	add := func(section, name, value string) {
		if value != "" {
			out = append(out, fact{section, name, value})
		}
	}
	add(sectionModule, "", v.module())
	if !v.up {
		return out
	}
	for i := range node {
		if r := &node[i]; r.Metric == collector.DriverInfo && r.Label("vendor") == v.Vendor {
			add(sectionDriver, "", r.Label("version"))
			add(sectionCUDA, "", r.Label("cuda_version"))
		}
	}
	add(sectionMIG, "", string(v.layout()))
	for i := range v.Readings {
		r := &v.Readings[i]
		switch r.Metric {
		case collector.FirmwareInfo:
			if name := r.Label("component"); name != "" && !reserved(name) {
				add(sectionFirmware, name, r.Label("version"))
			}
		case collector.FPGABitstreamInfo:
			if region := r.Label("region"); !v.empty(region) {
				add(sectionBitstream, region+"/"+r.Label("kind"), r.Label("id"))
			}
		case collector.FPGARootKeyInfo:
			if key := r.Label("key"); key != "" {
				add(sectionRootKey, key, r.Label("hash"))
			}
		}
	}
	return out
}

// moduleNone is the module of a device without a bound driver.
const moduleNone = "none"

// module returns the kernel driver that is bound to the function of the device,
// moduleNone, or "" if unknown. It comes from the bus, also for a device that
// does not answer, else from the source of the device.
func (v *view) module() string {
	module := ""
	for i := range v.Readings {
		switch r := &v.Readings[i]; {
		case r.Metric == collector.PCIeDriverBound && r.Label("pci_address") == v.PCI:
			if r.Value == 0 {
				return moduleNone
			}
			return r.Label("driver")
		case r.Metric == collector.FPGAInfo && v.up:
			module = r.Label("driver")
		}
	}
	return module
}

// empty reports whether the region is known to have no usable design now. The id
// that is still exported is that of the previous design.
func (v *view) empty(region string) bool {
	return slices.ContainsFunc(v.Readings, func(r collector.Reading) bool {
		return r.Metric == collector.FPGABitstreamLoaded && r.Label("region") == region && r.Value == 0
	})
}

// anyEmpty reports whether a region is empty.
func (v *view) anyEmpty() bool {
	return slices.ContainsFunc(v.Readings, func(r collector.Reading) bool {
		return r.Metric == collector.FPGABitstreamLoaded && r.Value == 0
	})
}

// layout returns the MIG layout of the GPU, or "" if unknown.
func (v *view) layout() Layout {
	counts := map[string]int{}
	layout := Layout("")
	for i := range v.Readings {
		switch r := &v.Readings[i]; r.Metric {
		case collector.MIGMode:
			if r.Label("when") == "current" {
				layout = layoutEmpty
				if r.Value == 0 {
					layout = layoutDisabled
				}
			}
		case collector.MIGInstances:
			profile := r.Label("profile")
			if r.Value == 0 {
				continue
			}
			if !profileCount().MatchString(strconv.Itoa(int(r.Value)) + "x" + profile) {
				return "" // a partition whose shape could not be read
			}
			counts[profile] = int(r.Value)
		}
	}
	if len(counts) > 0 {
		return layoutOf(counts)
	}
	return layout
}
