package kernellog

import (
	"bytes"
	"cmp"
	"strconv"
	"strings"

	"github.com/accel-exporter/accel-exporter/collector"
)

// Outcome classifies a message.
type Outcome uint8

const (
	// Unrelated means that the message is no fault of an accelerator.
	Unrelated Outcome = iota
	// Reported means that the message is an event.
	Reported
	// Part means that the message belongs to the event of another message.
	Part
	// MalformedXid means that the message begins like an Xid and has no known form.
	MalformedXid
	// MalformedSXid means that the message begins like an SXid and has no known form.
	MalformedSXid
)

// Parser converts messages of the kernel to events. It keeps state between
// messages, such as the address of a GPU. It is used by one
// goroutine.
type Parser struct {
	accelerator func(pciAddress string) bool

	lost   string // address of "The NVIDIA GPU …", whose fault follows
	left   int    // number of lines in which it must follow
	region bool   // the address of the GPU without a memory region follows
	// explained is where NVIDIA's driver has reported why it could not start the GPU.
	explained string
	heads     []aerHead
	// fatal: the latest uncorrectable PCIe error, of any device, was fatal.
	fatal bool

	repeated map[string]bool // of XRT's drivers: what has been reported of a card since its reset

	failed string // of AMD's driver: where the latest reset has failed
}

// NewParser returns a Parser. accelerator reports whether PCIe errors of the device at an address are
// events; errors of devices with an accelerator's driver always are.
func NewParser(accelerator func(pciAddress string) bool) *Parser {
	return &Parser{accelerator: accelerator}
}

// Parse parses one message without the prefix of the log: the unescaped text of
// a record of /dev/kmsg, one line. The Event has no Time and no Source, and in Detail
// the whole text.
func (p *Parser) Parse(line []byte) (collector.Event, Outcome) {
	if !p.concerns(line) {
		return collector.Event{}, Unrelated
	}
	text := string(line)
	switch {
	case strings.HasPrefix(text, "NVRM: "):
		return p.nvrm(text)
	case strings.HasPrefix(text, "nvidia-nvswitch"):
		return sxid(text)
	}
	if e, outcome := p.probe(text); outcome != Unrelated {
		return e, outcome
	}
	if e, outcome := p.fpga(text); outcome != Unrelated {
		return e, outcome
	}
	if e, outcome := p.amdgpu(text); outcome != Unrelated {
		return e, outcome
	}
	return p.aer(text)
}

// marks are what a line of an event contains, except later lines of PCIe errors.
var marks = [][]byte{
	[]byte("NVRM: "), []byte("nvidia-nvswitch"), []byte("amdgpu"), []byte("[drm"), []byte(busErrorMark), []byte(firmwareMark), []byte(probeMark), []byte(recoverMark), []byte(receivedMark), []byte(containedMark), []byte(fenceMark),
	[]byte("xclmgmt "), []byte("xocl "), []byte("ami: "), []byte("fpga_manager "), []byte("dfl-port "), []byte(inaccessibleMark),
}

// concerns reports whether a line, including its prefix, may contain a message
// that is not Unrelated.
func (p *Parser) concerns(line []byte) bool {
	for _, mark := range marks {
		if bytes.Contains(line, mark) {
			return true
		}
	}
	return len(p.heads) > 0 && (bytes.IndexByte(line, '[') >= 0 || bytes.Contains(line, []byte(severityMark)))
}

// pciAddress is a PCI address as four groups, see address. NVIDIA's driver omits the
// function, which then is 0, and may print the domain with eight digits.
const pciAddress = `(?:PCI:)?([[:xdigit:]]{4,8}):([[:xdigit:]]{2}):([01][[:xdigit:]])(?:\.([0-7]))?`

// address returns the address in the groups of pciAddress as the kernel prints it:
// 0000:1b:00.0.
func address(groups []string) string {
	domain, bus, slot, function := groups[0], groups[1], groups[2], cmp.Or(groups[3], "0")
	for len(domain) > 4 && domain[0] == '0' {
		domain = domain[1:]
	}
	return strings.ToLower(domain + ":" + bus + ":" + slot + "." + function)
}

// decimal and hexadecimal return the number in a group that matches digits only.
func decimal(digits string) uint64 {
	n, _ := strconv.ParseUint(digits, 10, 64)
	return n
}

func hexadecimal(digits string) uint32 {
	n, _ := strconv.ParseUint(digits, 16, 32)
	return uint32(n)
}
