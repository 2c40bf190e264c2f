package kernellog

import (
	"bytes"
	"fmt"
	"math"
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
	var rec record
	if len(line) == 0 || line[0] < '0' || line[0] > '9' {
		return rec, false
	}
	semicolon := bytes.IndexByte(line, ';')
	if semicolon < 0 {
		return rec, false
	}
	head := line[:semicolon]
	rec.text = line[semicolon+1:]
	prio, head, ok := number(head)
	rec.kernel = prio < facilities
	if !ok || len(head) == 0 || head[0] != ',' {
		return rec, false
	}
	if rec.seq, head, ok = number(head[1:]); !ok || len(head) == 0 || head[0] != ',' {
		return rec, false
	}
	rec.usec, head, ok = number(head[1:])
	if !ok || len(head) == 0 || head[0] != ',' || rec.usec > math.MaxInt64/1000 {
		return rec, false
	}
	return rec, true
}

// number parses a decimal number at the beginning of b and returns the rest. It
// fails where there is none or where it overflows.
func number(b []byte) (n uint64, rest []byte, ok bool) {
	i := 0
	for ; i < len(b) && b[i] >= '0' && b[i] <= '9'; i++ {
		d := uint64(b[i] - '0')
		if n > (math.MaxUint64-d)/10 {
			return 0, b, false
		}
		n = n*10 + d
	}
	return n, b[i:], i > 0
}

// hexadecimal parses at most limit digits at the beginning of b.
func hexadecimal(b []byte, limit int) (n uint64, digits int, rest []byte) {
	i := 0
	for ; i < len(b) && i < limit; i++ {
		v := unhex(b[i])
		if v < 0 {
			break
		}
		n = n<<4 | uint64(v)
	}
	return n, i, b[i:]
}

func unhex(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	default:
		return -1
	}
}

// unescape appends text to dst and decodes \xNN, which the kernel writes for
// anything but printable ASCII.
func unescape(dst, text []byte) []byte {
	for i := bytes.IndexByte(text, '\\'); i >= 0; {
		dst = append(dst, text[:i]...)
		if text = text[i:]; len(text) >= 4 && text[1] == 'x' && unhex(text[2]) >= 0 && unhex(text[3]) >= 0 {
			dst = append(dst, byte(unhex(text[2])<<4|unhex(text[3])))
			text = text[4:]
		} else {
			dst, text = append(dst, '\\'), text[1:]
		}
		i = bytes.IndexByte(text, '\\')
	}
	return append(dst, text...)
}

// isProperty reports whether a line is a property of the record before it: "
// SUBSYSTEM=pci", " DEVICE=+pci:0000:1b:00.0".
func isProperty(line []byte) bool {
	if line[0] != ' ' {
		return false
	}
	for i, c := range line[1:] {
		if c == '=' {
			return i > 0
		}
		if (c < 'A' || c > 'Z') && c != '_' {
			return false
		}
	}
	return false
}

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
