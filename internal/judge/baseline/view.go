package baseline

import (
	"cmp"
	"slices"
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

// kinds of accel_fpga_bitstream_info that a resource name can encode.
const (
	kindAFU       = "afu"
	kindInterface = "pr_interface"
	kindShell     = "shell"
	kindTimestamp = "shell_timestamp"
)

// watched reports whether a family has values that are compared.
func watched(m *collector.Metric) bool {
	switch m {
	case collector.DeviceUp, collector.FirmwareInfo,
		collector.MIGMode, collector.MIGInstances,
		collector.PCIeFunctionInfo, collector.PCIeDriverBound,
		collector.FPGAInfo, collector.FPGABitstreamInfo, collector.FPGABitstreamLoaded, collector.FPGARootKeyInfo:
		return true
	}
	return false
}

// view is the compared part of the state of a device.
type view struct {
	class    collector.Class
	vendor   string
	model    string
	pci      string
	readings []collector.Reading // of watched families
	held     []string            // resource names
	// Derived from the readings.
	pciID string
	up    bool // the device answers
}

// shows reports whether v is the view of d.
func (v *view) shows(d *collector.Device, held []string) bool {
	if v.class != d.Class || v.vendor != d.Vendor || v.model != d.Model || v.pci != d.PCI || !slices.Equal(v.held, held) {
		return false
	}
	n := 0
	for i := range d.Readings {
		r := &d.Readings[i]
		if !watched(r.Metric) {
			continue
		}
		if n == len(v.readings) || !sameReading(&v.readings[n], r) {
			return false
		}
		n++
	}
	return n == len(v.readings)
}

func sameReading(a, b *collector.Reading) bool {
	return a.Metric == b.Metric && a.Value == b.Value && slices.Equal(a.Labels, b.Labels)
}

// look returns the view of a device. It shares no mutable data with d.
func look(d *collector.Device, held []string) view {
	v := view{class: d.Class, vendor: d.Vendor, model: d.Model, pci: d.PCI, held: slices.Clone(held)}
	for i := range d.Readings {
		if !watched(d.Readings[i].Metric) {
			continue
		}
		r := d.Readings[i]
		r.Labels = slices.Clone(r.Labels)
		v.readings = append(v.readings, r)
		switch r.Metric {
		case collector.DeviceUp:
			v.up = v.up || r.Value == 1
		case collector.FPGAInfo:
			v.pciID = cmp.Or(r.Label("pci_id"), v.pciID)
		case collector.PCIeFunctionInfo:
			if r.Label("pci_address") == v.pci {
				v.pciID = cmp.Or(v.pciID, functionID(&r))
			}
		}
	}
	return v
}

// functionID returns vendor and device of a PCI function, or "" if one is unknown.
func functionID(r *collector.Reading) string {
	vendor, device := strings.TrimPrefix(r.Label("vendor_id"), "0x"), strings.TrimPrefix(r.Label("device_id"), "0x")
	if vendor == "" || device == "" {
		return ""
	}
	return vendor + ":" + device
}
