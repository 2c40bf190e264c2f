package kernellog

import (
	"regexp"
	"slices"
	"strings"

	"github.com/accel-exporter/accel-exporter/collector"
)

// maxHeads is how many PCIe errors may wait for their second line: several
// processors may print at once.
const maxHeads = 8

// aerHead is the first line of a PCIe error.
type aerHead struct {
	at       string
	severity string // corrected, nonfatal, fatal; empty until a later line has it
	bits     uint32 // of the errors, where severity is empty
	text     string
}

// What the first lines of an error, and the last one of an error that the firmware
// handles, contain.
const (
	busErrorMark = "PCIe Bus Error: severity="
	firmwareMark = "aer_status: 0x"
	severityMark = "aer_uncor_severity: 0x"
	// recoverMark is printed for each device below the port of an uncorrectable error
	// whose driver cannot recover it.
	recoverMark = "can't recover ("
	// receivedMark and containedMark are of a port with an error below it.
	receivedMark  = "atal) error "
	containedMark = "DPC: containment event"
)

var (
	// Some kernels print the tag "AER:" before the message.
	deviceLine = regexp.MustCompile(`^(\S+) ` + pciAddress + `: *(?:AER: *)?(.*)$`)
	busError   = regexp.MustCompile(`^` + busErrorMark + `([^,]*)(?:, type=(\w+))?`)
	// Uncorrectable (Fatal) error message received from 0000:18:00.0, and a port that
	// has cut the link (Downstream Port Containment).
	received     = regexp.MustCompile(`^(?:Multiple )?Uncorrect\w+ \((Fatal|Non-Fatal)\) error (?:message )?received|^` + containedMark)
	statusMask   = regexp.MustCompile(`\] error status/mask=([[:xdigit:]]{1,8})/([[:xdigit:]]{1,8})`)
	firmwareLine = regexp.MustCompile(`^` + firmwareMark + `([[:xdigit:]]{1,8}), aer_mask: 0x([[:xdigit:]]{1,8})`)
	bitLine      = regexp.MustCompile(`^\[ *([0-9]{1,2})\] *(\S+)`)
	fatalBits    = regexp.MustCompile(`^` + severityMark + `([[:xdigit:]]{1,8})`)
)

// severities are the words of the kernel; older kernels print Corrected and
// Uncorrected.
var severities = map[string]string{
	"Corrected": "corrected", "Correctable": "corrected",
	"Uncorrected (Non-Fatal)": "nonfatal", "Uncorrectable (Non-Fatal)": "nonfatal",
	"Uncorrected (Fatal)": "fatal", "Uncorrectable (Fatal)": "fatal",
}

// correctable and uncorrectable are the kernel's names for the bits of the
// status registers, which the PCI Express specification defines. In Sub they
// follow the severity. Source: drivers/pci/pcie/aer.c.
var (
	correctable = [32]string{
		0: "RxErr", 6: "BadTLP", 7: "BadDLLP", 8: "Rollover", 12: "Timeout",
		13: "NonFatalErr", 14: "CorrIntErr", 15: "HeaderOF",
	}
	uncorrectable = [32]string{
		0: "Undefined", 4: "DLP", 5: "SDES", 12: "TLP", 13: "FCP", 14: "CmpltTO", 15: "CmpltAbrt",
		16: "UnxCmplt", 17: "RxOF", 18: "MalfTLP", 19: "ECRC", 20: "UnsupReq", 21: "ACSViol",
		22: "UncorrIntErr", 23: "BlockedTLP", 24: "AtomicOpBlocked", 25: "TLPBlockedErr",
		26: "PoisonTLPBlocked", 27: "DMWrReqBlocked", 28: "IDECheck", 29: "MisIDETLP",
		30: "PCRC_CHECK", 31: "TLPXlatBlocked",
	}
)

// aer parses a line of a PCIe error. The kernel prints several for one error;
// the line with the bits becomes the event:
//
//	nvidia 0000:1b:00.0: PCIe Bus Error: severity=Uncorrectable (Fatal), type=Transaction Layer, (Requester ID)
//	nvidia 0000:1b:00.0:   device [10de:2330] error status/mask=00004000/00400000
//	nvidia 0000:1b:00.0:    [14] CmpltTO                (First)
//
// Where the firmware handles the errors, the format differs, and the line that determines
// the severity becomes the event: the first for a correctable error, else the
// last.
//
//	nvidia 0000:1b:00.0: aer_status: 0x00004000, aer_mask: 0x00400000
//	nvidia 0000:1b:00.0:    [14] CmpltTO                (First)
//	nvidia 0000:1b:00.0: aer_layer=Transaction Layer, aer_agent=Requester ID
//	nvidia 0000:1b:00.0: aer_uncor_severity: 0x00062011
func (p *Parser) aer(text string) (collector.Event, Outcome) {
	m := deviceLine.FindStringSubmatch(text)
	if m == nil {
		return collector.Event{}, Unrelated
	}
	driver, at, body := m[1], address(m[2:]), m[6]
	if r := received.FindStringSubmatch(body); r != nil {
		p.fatal = r[1] != "Non-Fatal"
		return collector.Event{}, Unrelated
	}
	if strings.HasPrefix(body, recoverMark) && p.fatal && p.reports(driver, at) {
		// The kernel has reset the link to the device.
		return collector.Event{Kind: collector.EventPCIeRecoveryFailed, PCI: at, Detail: text}, Reported
	}
	if b := busError.FindStringSubmatch(body); b != nil {
		severity := severities[b[1]]
		if severity != "corrected" {
			p.fatal = severity == "fatal"
		}
		if severity == "" || !p.reports(driver, at) {
			return collector.Event{}, Unrelated
		}
		if b[2] == "Inaccessible" {
			// No status could be read, so no status line follows.
			return collector.Event{Kind: collector.EventAER, PCI: at, Sub: severity + "/Inaccessible", Detail: text}, Reported
		}
		return p.expect(aerHead{at: at, severity: severity, text: text})
	}
	if f := firmwareLine.FindStringSubmatch(body); f != nil {
		bits := hexadecimal(f[1]) &^ hexadecimal(f[2])
		if bits == 0 || !p.reports(driver, at) {
			return collector.Event{}, Unrelated
		}
		return p.expect(aerHead{at: at, bits: bits, text: text})
	}
	i := slices.IndexFunc(p.heads, func(h aerHead) bool { return h.at == at })
	if i < 0 {
		return collector.Event{}, Unrelated
	}
	head := p.heads[i]
	severity, bits := head.second(body)
	if severity == "" {
		return collector.Event{}, Unrelated
	}
	p.heads = slices.Delete(p.heads, i, i+1)
	return collector.Event{
		Kind: collector.EventAER, PCI: at, Code: uint64(bits), Sub: severity + "/" + errorName(severity, bits),
		Detail: head.text + "; " + body,
	}, Reported
}

// second parses a line after the first of an error. It returns the severity and
// the bits of the error where the line determines them.
func (h *aerHead) second(body string) (severity string, bits uint32) {
	if h.severity != "" {
		if m := statusMask.FindStringSubmatch(body); m != nil {
			return h.severity, hexadecimal(m[1]) &^ hexadecimal(m[2])
		}
		return "", 0
	}
	if m := bitLine.FindStringSubmatch(body); m != nil {
		if bit := decimal(m[1]); bit < 32 && m[2] == correctable[bit] {
			return "corrected", h.bits
		}
	}
	if m := fatalBits.FindStringSubmatch(body); m != nil {
		if h.bits&hexadecimal(m[1]) != 0 {
			return "fatal", h.bits
		}
		return "nonfatal", h.bits
	}
	return "", 0
}

// expect keeps the first line of an error for the second.
func (p *Parser) expect(h aerHead) (collector.Event, Outcome) {
	p.heads = slices.DeleteFunc(p.heads, func(o aerHead) bool { return o.at == h.at })
	if len(p.heads) == maxHeads {
		p.heads = slices.Delete(p.heads, 0, 1)
	}
	p.heads = append(p.heads, h)
	return collector.Event{}, Part
}

func (p *Parser) reports(driver, at string) bool {
	return collector.IsAcceleratorDriver(driver) || driver != "pcieport" && p.accelerator != nil && p.accelerator(at)
}

// errorName returns the name of the lowest bit, which the kernel prints first.
func errorName(severity string, bits uint32) string {
	names := &uncorrectable
	if severity == "corrected" {
		names = &correctable
	}
	for i, name := range names {
		if bits>>i&1 != 0 {
			if name == "" {
				break
			}
			return name
		}
	}
	return "other"
}
