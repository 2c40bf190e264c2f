package fpga

import (
	"strconv"
	"strings"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
)

// pciFiles are the files that identify a PCI function. The source pcie reads
// its link and errors.
var pciFiles = []string{
	"????:??:??.?/vendor", "????:??:??.?/device", "????:??:??.?/subsystem_vendor", "????:??:??.?/subsystem_device",
	"????:??:??.?/numa_node",
}

// pciIdentity is the PCI core's identity of a function.
type pciIdentity struct {
	vendor, device, subsystem string // four hex digits each
	node                      string // NUMA node, empty where the kernel has none
}

// readPCI reads the identity of the function at dir, which changes with the
// card.
func (r *reading) readPCI(dir string, interval time.Duration) pciIdentity {
	id := func(file string) string {
		text, _ := r.textEvery(interval, dir+"/"+file)
		return strings.TrimPrefix(tidy(text), "0x")
	}
	p := pciIdentity{vendor: id("vendor"), device: id("device"), subsystem: id("subsystem_device")}
	if text, ok := r.textEvery(interval, dir+"/numa_node"); ok {
		if n, err := strconv.Atoi(text); err == nil && n >= 0 {
			p.node = text
		}
	}
	return p
}

// vendorOf returns Device.Vendor for a PCI vendor id.
func vendorOf(id string) string {
	n, _ := strconv.ParseUint(id, 16, 16)
	return collector.PCIVendor(uint32(n))
}

// info sets the rows with the device's identity. The arguments are the labels
// of accel_device_info and accel_fpga_info that r does not have.
func (r *reading) info(e *env, driver string, p pciIdentity, part, serial, board, manager string) {
	r.Set(collector.DeviceInfo, 1, string(r.Class), r.Vendor, r.Model, part, "", r.PCI, p.node, serial, board, "")
	id := ""
	if p.vendor != "" {
		id = p.vendor + ":" + p.device
	}
	r.Set(collector.FPGAInfo, 1, e.family.name, driver, id, manager)
}

// identity is the last text of the files that identify a card: it does not
// change because the card's controller does not answer.
type identity map[string]string

// first returns the text of a file in the first directory that has it, fit for
// a label. Where none has one now, it returns the last one.
func (i identity) first(r *reading, interval time.Duration, dirs []string, file string) string {
	for _, d := range dirs {
		if d == "" {
			continue
		}
		text, ok := r.textEvery(interval, d+"/"+file)
		if text = tidy(text); ok && text != "" && text != "N/A" {
			i[file] = text
			break
		}
	}
	return i[file]
}
