package kernellog

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/accel-exporter/accel-exporter/collector"
)

// Outcome is what became of a message.
type Outcome uint8

const (
	// Unrelated: nothing to tell of.
	Unrelated Outcome = iota
	// Told: the message is an event.
	Told
	// Part: the message belongs to an event that another message tells.
	Part
	// MalformedXid and MalformedSXid: the message begins like an event and is
	// of no known form.
	MalformedXid
	MalformedSXid
)

// maxCode is the greatest Xid or SXid that is believed. NVIDIA's tables end at
// 176 and at five digits.
const maxCode = 99_999

// Parser turns messages of the kernel into events. It keeps what one message
// says for those after it: the version of the driver, the address of a GPU.
// It is used by one goroutine.
type Parser struct {
	driver      generation
	accelerator func(pciAddress string) bool

	lost  address // of "The NVIDIA GPU …", whose fate follows
	left  int     // lines within which it does
	heads []aerHead
}

// NewParser returns a Parser for the messages of a machine whose NVIDIA driver
// has the version given, "" where it is not known: its banner in the log says.
// accelerator reports whether the device at an address is one whose PCIe errors
// are told; those of a device that an accelerator's driver holds always are.
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

// Parse takes one message, without what a log puts before it: the text of a
// record of /dev/kmsg, unescaped, one line. The Event lacks its Time and Source.
func (p *Parser) Parse(text []byte) (collector.Event, Outcome) {
	switch {
	case bytes.HasPrefix(text, nvrm):
		return p.nvrm(text)
	case bytes.HasPrefix(text, nvswitch):
		return parseSXid(text)
	default:
		return p.aer(text)
	}
}

// concerns reports whether a line with something before its message may hold
// one that is not Unrelated.
func (p *Parser) concerns(line []byte) bool {
	return bytes.Contains(line, nvrm) || bytes.Contains(line, nvswitch) || p.concernsAER(line)
}

// nvrm takes a message of NVIDIA's GPU driver.
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
		// The address, the PCI ID and the fate are three lines, or two.
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
	return collector.Event{Kind: collector.EventBusLoss, PCI: a.String(), Detail: detail(text)}, Told
}

// loaded takes the driver's banner, "x86_64 Kernel Module  580.105.08  …" or
// "Open Kernel Module for x86_64  580.65.06  …".
func (p *Parser) loaded(banner []byte) (collector.Event, Outcome) {
	for word := range bytes.FieldsSeq(banner) {
		if word[0] >= '0' && word[0] <= '9' && bytes.IndexByte(word, '.') > 0 {
			version := detail(word)
			p.driver = generationOf(version)
			return collector.Event{Kind: collector.EventDriverLoaded, Detail: version}, Told
		}
	}
	return collector.Event{}, Unrelated
}

// detail returns text as one line of at most MaxDetail bytes of valid UTF-8.
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
	for _, c := range text {
		if c < ' ' || c >= 0x7f {
			// A replacement takes one byte, as what it stands for does at least.
			return strings.Map(func(r rune) rune {
				if r < ' ' || r == 0x7f || r == utf8.RuneError {
					return '?'
				}
				return r
			}, string(text))
		}
	}
	return string(text)
}
