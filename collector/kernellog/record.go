package kernellog

import (
	"bytes"
	"math"
	"regexp"
	"strconv"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/collector/sysfs"
)

// record is one record of /dev/kmsg: "prio,seq,usec,flags[,more];text".
// Properties of the record follow it on lines that begin with a blank.
type record struct {
	seq  uint64
	usec uint64 // of the kernel's log clock, which starts at boot
	text []byte // escaped
	// kernel: the facility is the kernel's, which no process that writes to the
	// device can use (Documentation/ABI/testing/dev-kmsg).
	kernel bool
}

// facilities is the lowest priority with a facility other than the kernel's:
// the lower three bits are the level.
const facilities = 8

// parseRecord returns the record in a line. It fails for a line of any other
// form.
func parseRecord(line []byte) (record, bool) {
	head, text, ok := bytes.Cut(line, []byte{';'})
	fields := bytes.SplitN(head, []byte{','}, 4)
	if !ok || len(fields) < 4 {
		return record{}, false
	}
	prio, err1 := strconv.ParseUint(string(fields[0]), 10, 64)
	seq, err2 := strconv.ParseUint(string(fields[1]), 10, 64)
	usec, err3 := strconv.ParseUint(string(fields[2]), 10, 64)
	if err1 != nil || err2 != nil || err3 != nil || usec > math.MaxInt64/1000 {
		return record{}, false
	}
	return record{seq: seq, usec: usec, text: text, kernel: prio < facilities}, true
}

// escaped is how the kernel writes anything but printable ASCII.
var escaped = regexp.MustCompile(`\\x[[:xdigit:]]{2}`)

// unescape decodes \xNN.
func unescape(text []byte) []byte {
	return escaped.ReplaceAllFunc(text, func(b []byte) []byte { return []byte{byte(hexadecimal(string(b[2:])))} })
}

// property is a property of the record before it: " SUBSYSTEM=pci", "
// DEVICE=+pci:0000:1b:00.0".
var property = regexp.MustCompile(`^ [A-Z_]+=`)

// acceleratorsOf returns whether the device at an address is an accelerator:
// other devices on the bus have PCIe errors too. It reads the attributes vendor
// and class of the PCI core (Documentation/ABI/testing/sysfs-bus-pci). A device
// that has left the bus has none.
func acceleratorsOf(fs sysfs.FS) func(pciAddress string) bool {
	return func(pciAddress string) bool {
		dir := "bus/pci/devices/" + pciAddress
		vendor, err := fs.Read(dir + "/vendor")
		class, err2 := fs.Read(dir + "/class")
		if err != nil || err2 != nil {
			return false
		}
		id, err := strconv.ParseUint(vendor, 0, 16)
		return err == nil && collector.ReportsPCIErrors(uint32(id), class)
	}
}
