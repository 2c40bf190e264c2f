package kernellog

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/accel-exporter/accel-exporter/collector"
)

// Outcome classifies a message.
type Outcome uint8

const (
	// Unrelated: the message is no fault of an accelerator.
	Unrelated Outcome = iota
	// Reported: the message is an event.
	Reported
	// Part: the message belongs to the event of another message.
	Part
	// MalformedXid and MalformedSXid: the message begins like an event and has
	// no known form.
	MalformedXid
	MalformedSXid
)

// maxCode is the largest plausible Xid or SXid. NVIDIA's tables end at 176, and
// at five digits.
const maxCode = 99_999

// Parser converts messages of the kernel to events. It keeps state between
// messages: the version of the driver, the address of a GPU. It is used by one
// goroutine.
type Parser struct {
	driver      generation
	accelerator func(pciAddress string) bool

	lost  address // of "The NVIDIA GPU …", whose fault follows
	left  int     // number of lines in which it must follow
	heads []aerHead

	failed string // of AMD's driver: where the latest reset has failed
}

// NewParser returns a Parser for a machine with the given version of NVIDIA's
// driver; "" where it is unknown until the driver's banner appears in the log.
// accelerator reports whether PCIe errors of the device at an address are
// events; errors of devices with an accelerator's driver always are.
func NewParser(driver string, accelerator func(pciAddress string) bool) *Parser {
	return &Parser{driver: generationOf(driver), accelerator: accelerator}
}

var (
	nvrm      = []byte("NVRM: ")
	nvswitch  = []byte("nvidia-nvswitch")
	xidHead   = []byte("NVRM: Xid")
	loading   = []byte("loading NVIDIA UNIX ")
	fallen    = []byte("fallen off the bus")
	theGPU    = []byte("The NVIDIA GPU ")
	gpuPrefix = []byte("GPU ")
	gpuAt     = []byte("GPU at ")
)

// Parse parses one message without the prefix of the log: the unescaped text of
// a record of /dev/kmsg, one line. The Event has no Time and no Source.
func (p *Parser) Parse(text []byte) (collector.Event, Outcome) {
	switch {
	case bytes.HasPrefix(text, nvrm):
		return p.nvrm(text)
	case bytes.HasPrefix(text, nvswitch):
		return parseSXid(text)
	}
	if e, outcome := p.amdgpu(text); outcome != Unrelated {
		return e, outcome
	}
	return p.aer(text)
}

// concerns reports whether a line, including its prefix, may contain a message
// that is not Unrelated.
func (p *Parser) concerns(line []byte) bool {
	return bytes.Contains(line, nvrm) || bytes.Contains(line, nvswitch) || bytes.Contains(line, amdgpuName) || p.concernsAER(line)
}

// nvrm parses a message of NVIDIA's GPU driver.
func (p *Parser) nvrm(text []byte) (collector.Event, Outcome) {
	if bytes.HasPrefix(text, xidHead) {
		return p.parseXid(text)
	}
	body := text[len(nvrm):]
	if version, ok := bytes.CutPrefix(body, loading); ok {
		return p.loaded(version)
	}
	if rest, ok := bytes.CutPrefix(body, theGPU); ok {
		a, _, ok := parseAddress(rest)
		if !ok {
			return collector.Event{}, Unrelated
		}
		// The address, the PCI ID and the fault are two or three lines.
		p.lost, p.left = a, 2
		return collector.Event{}, Part
	}
	if bytes.HasPrefix(body, fallen) && p.left > 0 {
		p.left = 0
		return busLoss(p.lost, text)
	}
	p.left = max(p.left-1, 0)
	if !bytes.Contains(body, fallen) {
		return collector.Event{}, Unrelated
	}
	rest, ok := bytes.CutPrefix(body, gpuAt)
	if !ok {
		rest, ok = bytes.CutPrefix(body, gpuPrefix)
	}
	if a, _, known := parseAddress(rest); ok && known {
		return busLoss(a, text)
	}
	return collector.Event{}, Unrelated
}

func busLoss(a address, text []byte) (collector.Event, Outcome) {
	return collector.Event{Kind: collector.EventBusLoss, PCI: a.String(), Detail: detail(text)}, Reported
}

// loaded parses the driver's banner, "x86_64 Kernel Module  580.105.08  …" or
// "Open Kernel Module for x86_64  580.65.06  …".
func (p *Parser) loaded(banner []byte) (collector.Event, Outcome) {
	for word := range bytes.FieldsSeq(banner) {
		if word[0] >= '0' && word[0] <= '9' && bytes.IndexByte(word, '.') > 0 {
			version := detail(word)
			p.driver = generationOf(version)
			return collector.Event{Kind: collector.EventDriverLoaded, Detail: version}, Reported
		}
	}
	return collector.Event{}, Unrelated
}

// detail returns text as one line of valid UTF-8, at most MaxDetail bytes.
func detail(text []byte) string {
	text = bytes.TrimRight(text, " \t")
	if len(text) > collector.MaxDetail {
		text = text[:collector.MaxDetail]
		for range utf8.UTFMax - 1 {
			if r, n := utf8.DecodeLastRune(text); r != utf8.RuneError || n != 1 {
				break
			}
			text = text[:len(text)-1]
		}
	}
	// The replacement is one byte, never longer than what it replaces.
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == utf8.RuneError {
			return '?'
		}
		return r
	}, string(text))
}
