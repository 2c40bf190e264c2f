package kernellog

import (
	"bytes"
	"slices"

	"github.com/accel-exporter/accel-exporter/collector"
)

// maxHeads is how many PCIe errors may wait for their second line: several
// processors may print at once.
const maxHeads = 8

// aerHead is the first line of a PCIe error.
type aerHead struct {
	at       address
	severity string // corrected, nonfatal, fatal; empty until a later line has it
	bits     uint32 // of the errors, where severity is empty
	text     string
}

var (
	busError    = []byte("PCIe Bus Error: severity=")
	statusMask  = []byte("] error status/mask=")
	firmwareAER = []byte("aer_status: 0x")
	maskFollows = []byte(", aer_mask: 0x")
	fatalBits   = []byte("aer_uncor_severity: 0x")
	aerTag      = []byte("AER:")
)

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

// concernsAER reports whether text may be a line of a PCIe error.
func (p *Parser) concernsAER(text []byte) bool {
	return bytes.Contains(text, busError) || bytes.Contains(text, firmwareAER) ||
		len(p.heads) > 0 && (bytes.IndexByte(text, '[') >= 0 || bytes.Contains(text, fatalBits))
}

// aer parses a line of a PCIe error. The kernel prints several for one error;
// the line with the bits becomes the event:
//
//	nvidia 0000:1b:00.0: PCIe Bus Error: severity=Uncorrectable (Fatal), type=Transaction Layer, (Requester ID)
//	nvidia 0000:1b:00.0:   device [10de:2330] error status/mask=00004000/00400000
//	nvidia 0000:1b:00.0:    [14] CmpltTO                (First)
//
// Older kernels print the severity as Corrected or Uncorrected. Where the
// firmware handles the errors, the format differs, and the line that determines
// the severity becomes the event: the first for a correctable error, else the
// last.
//
//	nvidia 0000:1b:00.0: aer_status: 0x00004000, aer_mask: 0x00400000
//	nvidia 0000:1b:00.0:    [14] CmpltTO                (First)
//	nvidia 0000:1b:00.0: aer_layer=Transaction Layer, aer_agent=Requester ID
//	nvidia 0000:1b:00.0: aer_uncor_severity: 0x00062011
func (p *Parser) aer(text []byte) (collector.Event, Outcome) {
	if !p.concernsAER(text) {
		return collector.Event{}, Unrelated
	}
	driver, a, body, ok := deviceMessage(text)
	if !ok {
		return collector.Event{}, Unrelated
	}
	if rest, ok := bytes.CutPrefix(body, busError); ok {
		return p.busError(driver, a, rest, text)
	}
	if rest, ok := bytes.CutPrefix(body, firmwareAER); ok {
		status, mask, ok := twoWords(rest, maskFollows)
		if ok && status&^mask != 0 && p.reports(driver, a) {
			p.expect(aerHead{at: a, bits: status &^ mask, text: detail(text)})
			return collector.Event{}, Part
		}
		return collector.Event{}, Unrelated
	}
	i := slices.IndexFunc(p.heads, func(h aerHead) bool { return h.at == a })
	if i < 0 {
		return collector.Event{}, Unrelated
	}
	head := p.heads[i]
	severity, bits := second(head, body)
	if severity == "" {
		return collector.Event{}, Unrelated
	}
	p.heads = slices.Delete(p.heads, i, i+1)
	return collector.Event{
		Kind: collector.EventAER, PCI: a.String(), Code: uint64(bits), Sub: severity + "/" + errorName(severity, bits),
		Detail: detail(append(append([]byte(head.text), "; "...), body...)),
	}, Reported
}

// second parses a line after the first of an error. It returns the severity and
// the bits of the error where the line determines them.
func second(head aerHead, body []byte) (severity string, bits uint32) {
	if head.severity != "" {
		_, rest, _ := bytes.Cut(body, statusMask)
		status, mask, ok := twoWords(rest, []byte("/"))
		if !ok {
			return "", 0
		}
		return head.severity, status &^ mask
	}
	if bit, name, ok := bitLine(body); ok && name != "" && name == correctable[bit] {
		return "corrected", head.bits
	}
	rest, ok := bytes.CutPrefix(body, fatalBits)
	if !ok {
		return "", 0
	}
	if fatal, n, _ := hexadecimal(rest, 8); n > 0 && head.bits&uint32(fatal) != 0 {
		return "fatal", head.bits
	}
	return "nonfatal", head.bits
}

// busError parses what follows "severity=".
func (p *Parser) busError(driver string, a address, rest, text []byte) (collector.Event, Outcome) {
	class, kind, _ := bytes.Cut(rest, []byte(","))
	severity := ""
	switch string(class) {
	case "Corrected", "Correctable":
		severity = "corrected"
	case "Uncorrected (Non-Fatal)", "Uncorrectable (Non-Fatal)":
		severity = "nonfatal"
	case "Uncorrected (Fatal)", "Uncorrectable (Fatal)":
		severity = "fatal"
	}
	if severity == "" || !p.reports(driver, a) {
		return collector.Event{}, Unrelated
	}
	if bytes.HasPrefix(kind, []byte(" type=Inaccessible")) {
		// No status could be read, so no status line follows.
		return collector.Event{Kind: collector.EventAER, PCI: a.String(), Sub: severity + "/Inaccessible", Detail: detail(text)}, Reported
	}
	p.expect(aerHead{at: a, severity: severity, text: detail(text)})
	return collector.Event{}, Part
}

// expect keeps the first line of an error for the second.
func (p *Parser) expect(h aerHead) {
	p.heads = slices.DeleteFunc(p.heads, func(o aerHead) bool { return o.at == h.at })
	if len(p.heads) == maxHeads {
		p.heads = slices.Delete(p.heads, 0, 1)
	}
	p.heads = append(p.heads, h)
}

func (p *Parser) reports(driver string, a address) bool {
	return collector.IsAcceleratorDriver(driver) || driver != "pcieport" && p.accelerator != nil && p.accelerator(a.String())
}

// deviceMessage splits "driver address: body" and removes the tag "AER:", which
// some kernels print before the body.
func deviceMessage(text []byte) (driver string, a address, body []byte, ok bool) {
	name, rest, ok := bytes.Cut(text, []byte(" "))
	if !ok {
		return "", a, nil, false
	}
	a, rest, ok = parseAddress(rest)
	if !ok || len(rest) == 0 || rest[0] != ':' {
		return "", a, nil, false
	}
	body = bytes.TrimLeft(rest[1:], " ")
	body = bytes.TrimLeft(bytes.TrimPrefix(body, aerTag), " ")
	return string(name), a, body, true
}

// twoWords parses two hexadecimal numbers separated by sep.
func twoWords(b, sep []byte) (first, second uint32, ok bool) {
	x, n, b := hexadecimal(b, 8)
	b, ok = bytes.CutPrefix(b, sep)
	y, m, _ := hexadecimal(b, 8)
	return uint32(x), uint32(y), ok && n > 0 && m > 0
}

// bitLine parses "[14] CmpltTO                (First)".
func bitLine(b []byte) (bit uint, name string, ok bool) {
	if len(b) == 0 || b[0] != '[' {
		return 0, "", false
	}
	n, b, ok := number(bytes.TrimLeft(b[1:], " "))
	b, closed := bytes.CutPrefix(b, []byte("]"))
	if !ok || !closed || n > 31 {
		return 0, "", false
	}
	word, _, _ := bytes.Cut(bytes.TrimLeft(b, " "), []byte(" "))
	return uint(n), string(word), true
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
