package kernellog

import (
	"regexp"
	"strings"

	"github.com/accel-exporter/accel-exporter/collector"
)

// Values of Sub of EventProbeFailed. Without one the cause is unknown.
const (
	subUnsupported = "unsupported" // the loaded driver does not support the device
	subNoRegion    = "no_region"   // the firmware of the node assigned no memory region
	subNoPower     = "no_power"    // the power cables of the board are not connected
)

// probeMark is what the kernel prints where a driver could not start a device.
const probeMark = " failed with error -"

var (
	// nvidia 0000:67:00.0: probe with driver nvidia failed with error -1
	probeLine = regexp.MustCompile(`^(\S+) ` + pciAddress + `: probe with driver \S+` + probeMark + `[0-9]`)
	// nvidia: probe of 0000:67:00.0 failed with error -1, before Linux 6.11.
	oldProbeLine = regexp.MustCompile(`^(\S+): probe of ` + pciAddress + probeMark + `[0-9]`)
	// NVRM: GPU 0000:67:00.0: RmInitAdapter failed! (0x22:0x65:762)
	initLine = regexp.MustCompile(`^NVRM: GPU ` + pciAddress + `: RmInitAdapter failed!`)
	// NVRM: GPU 0000:67:00.0: GPU does not have the necessary power cables connected.
	powerLine = regexp.MustCompile(`^NVRM: GPU ` + pciAddress + `: GPU does not have the necessary power cables connected`)
	// NVRM: BAR1 is 0M @ 0x0 (PCI:0000:67:00.0)
	regionLine = regexp.MustCompile(`^NVRM: BAR[0-9] is .* \(` + pciAddress + `\)`)
	// The lines after "NVRM: The NVIDIA GPU …" of a GPU that the driver does not
	// support. Source: nv-pci.c of NVIDIA's open kernel modules.
	unsupported = regexp.MustCompile(`\bnot supported by (?:the NVIDIA |open$|open nvidia\.ko)|\bsupported through the NVIDIA `)
)

const badRegion = "NVRM: This PCI I/O region assigned to your NVIDIA device is invalid"

// probe parses the kernel's line about a driver that could not start a device. The
// driver may have reported the cause before.
func (p *Parser) probe(text string) (collector.Event, Outcome) {
	m := probeLine.FindStringSubmatch(text)
	if m == nil {
		m = oldProbeLine.FindStringSubmatch(text)
	}
	if m == nil || !collector.IsAcceleratorDriver(m[1]) {
		return collector.Event{}, Unrelated
	}
	at := address(m[2:])
	if at == p.explained {
		p.explained = ""
		return collector.Event{}, Part
	}
	return collector.Event{Kind: collector.EventProbeFailed, PCI: at, Detail: text}, Reported
}

// nvidiaProbe parses what NVIDIA's driver reports of a GPU that it cannot start.
func (p *Parser) nvidiaProbe(text string) (collector.Event, Outcome) {
	if strings.HasPrefix(text, badRegion) {
		p.region = true
		return collector.Event{}, Part
	}
	e := collector.Event{Kind: collector.EventProbeFailed, Detail: text}
	if m := regionLine.FindStringSubmatch(text); m != nil && p.region {
		p.region = false
		e.PCI, e.Sub = address(m[1:]), subNoRegion
	} else if m := powerLine.FindStringSubmatch(text); m != nil {
		e.PCI, e.Sub = address(m[1:]), subNoPower
	} else if m := initLine.FindStringSubmatch(text); m != nil {
		if e.PCI = address(m[1:]); e.PCI == p.explained {
			p.explained = ""
			return collector.Event{}, Part
		}
		return e, Reported
	} else if p.left > 0 && unsupported.MatchString(text) {
		p.left = 0
		e.PCI, e.Sub = p.lost, subUnsupported
	} else {
		return collector.Event{}, Unrelated
	}
	p.explained = e.PCI
	return e, Reported
}
