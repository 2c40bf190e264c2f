package kernellog

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/collector/sysfs"
)

// address is a PCI address.
type address struct {
	domain           uint32
	bus, slot, funct uint8
}

// String returns the address as the kernel prints it: 0000:1b:00.0.
func (a address) String() string {
	return fmt.Sprintf("%04x:%02x:%02x.%x", a.domain, a.bus, a.slot, a.funct)
}

// parseAddress parses an address at the beginning of b, with or without "PCI:"
// before it, and returns the rest. NVIDIA's driver omits the function, which
// then is 0, and may print the domain with eight digits.
func parseAddress(b []byte) (a address, rest []byte, ok bool) {
	b = bytes.TrimPrefix(b, []byte("PCI:"))
	domain, n, b := hexadecimal(b, 8)
	if n < 4 || len(b) == 0 || b[0] != ':' {
		return a, b, false
	}
	bus, n, b := hexadecimal(b[1:], 2)
	if n != 2 || len(b) == 0 || b[0] != ':' {
		return a, b, false
	}
	slot, n, b := hexadecimal(b[1:], 2)
	if n != 2 || slot > 0x1f {
		return a, b, false
	}
	a = address{domain: uint32(domain), bus: uint8(bus), slot: uint8(slot)}
	if len(b) > 1 && b[0] == '.' && b[1] >= '0' && b[1] <= '7' {
		a.funct, b = b[1]-'0', b[2:]
	}
	if len(b) > 0 && unhex(b[0]) >= 0 {
		return a, b, false
	}
	return a, b, true
}

// accelerators distinguishes accelerators from the other devices on the bus,
// which have PCIe errors too.
type accelerators struct{ fs sysfs.FS }

// has reads the attributes vendor and class of the PCI core
// (Documentation/ABI/testing/sysfs-bus-pci). A device that has left the bus has
// none.
func (a accelerators) has(addr string) bool {
	dir := "bus/pci/devices/" + addr
	vendor, err := a.fs.Read(dir + "/vendor")
	if err != nil {
		return false
	}
	class, err := a.fs.Read(dir + "/class")
	if err != nil {
		return false
	}
	id, err := strconv.ParseUint(vendor, 0, 16)
	return err == nil && collector.ReportsPCIErrors(uint32(id), class)
}
