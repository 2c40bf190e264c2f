package kernellog

import (
	"maps"
	"regexp"
	"strings"

	"github.com/accel-exporter/accel-exporter/collector"
)

// Lines of the drivers of FPGAs.
var (
	// xclmgmt 0000:a3:00.0: firewall.m.12582914 ffff90a92e634c10 check_firewall: AXI Firewall 3 tripped, …
	xrtLine = regexp.MustCompile(`^(?:xclmgmt|xocl) ` + pciAddress + `: (.*)$`)
	// ami: ERROR           : Heartbeat fail count above threshold! Raising fatal event...
	amiLine = regexp.MustCompile(`^ami: ERROR *: (.*)$`)
	// fpga_manager fpga0: Error while writing image data to FPGA
	managerLine = regexp.MustCompile(`^fpga_manager (fpga[0-9]{1,4}): Error `)
	// dfl-port dfl-port.0: timeout, fail to reset device
	portLine = regexp.MustCompile(`^dfl-port (dfl-port\.[0-9]{1,4}): timeout, fail(?:ure)? to (?:reset|disable|enable) device`)
	// xocl 0000:5e:00.1: Unable to change power state from D3cold to D0, device inaccessible
	// nvidia 0000:3b:00.0: can't change power state from D3cold to D0 (config space inaccessible), of Linux 5
	inaccessible = regexp.MustCompile(`^(\S+) ` + pciAddress + `: (?:Unable to change|Refused to change|can't change) power state.* (?:device|\(config space) ` + inaccessibleMark)
)

const inaccessibleMark = "inaccessible"

// xrtLines are messages of XRT's drivers, and what they contain. Most are repeated every
// five seconds. Source: drivers/xocl of XRT 2.13 to 2.19.
var xrtLines = []struct {
	contain string
	kind    collector.EventKind
}{
	{" clocks have been stopped", collector.EventClocksStopped},
	{" tripped", collector.EventFirewall}, // AXI Firewall N
	// The firmware of a Versal card checks its firewalls and has no line with a fixed form.
	{"Card is in a Bad state, notify userpf", collector.EventFirewall},
	{"Card is in a BAD state, please issue", collector.EventFirewall},
	{"Card shutting down!", collector.EventThermalShutdown},
	{"is reporting a temperature of ", collector.EventOverheating},
	{"kernel clocks throttled at ", collector.EventThrottled},
	{"Board is not able to recover by PCI Hot reset", collector.EventResetFailed},
	// The end of a reset has a line only where it failed.
	{"Trying to reset card ", collector.EventReset},
	{"online current devices", collector.EventReset},
	{"Failed to download xclbin, err: ", collector.EventLoadFailed},
}

// maxRepeated bounds the messages that are known to be repeated.
const maxRepeated = 256

// fpga parses a message of a driver of FPGAs. The device of a message without an address is
// the name that the kernel has for it, or the driver's.
func (p *Parser) fpga(text string) (collector.Event, Outcome) {
	e := collector.Event{Detail: text}
	if m := inaccessible.FindStringSubmatch(text); m != nil && collector.IsAcceleratorDriver(m[1]) {
		e.Kind, e.PCI = collector.EventBusLoss, address(m[2:])
	} else if m := xrtLine.FindStringSubmatch(text); m != nil {
		e.PCI = address(m[1:])
		return p.xrt(e, m[5])
	} else if m := managerLine.FindStringSubmatch(text); m != nil {
		e.Kind, e.Device = collector.EventLoadFailed, m[1]
	} else if m := portLine.FindStringSubmatch(text); m != nil {
		e.Kind, e.Device = collector.EventResetFailed, m[1]
	} else if m := amiLine.FindStringSubmatch(text); m != nil && strings.HasPrefix(m[1], "Heartbeat fail count above threshold") {
		e.Kind, e.Device = collector.EventFirmwareStuck, "ami"
	} else {
		return collector.Event{}, Unrelated
	}
	return e, Reported
}

// xrt parses a message of XRT's drivers about a card. Both functions of a card report a trip.
func (p *Parser) xrt(e collector.Event, body string) (collector.Event, Outcome) {
	card := e.PCI[:len(e.PCI)-1]
	for _, l := range xrtLines {
		if !strings.Contains(body, l.contain) {
			continue
		}
		e.Kind = l.kind
		reported := func(kind collector.EventKind) bool { return p.repeated[card+string(kind)] }
		switch l.kind {
		case collector.EventReset:
			maps.DeleteFunc(p.repeated, func(key string, _ bool) bool { return strings.HasPrefix(key, card) })
			return e, Reported
		case collector.EventFirewall:
			// The driver's last line about stopped clocks is the same.
			if reported(collector.EventClocksStopped) {
				return collector.Event{}, Part
			}
		}
		if l.kind != collector.EventLoadFailed && reported(l.kind) {
			return collector.Event{}, Part
		}
		if p.repeated == nil || len(p.repeated) == maxRepeated {
			p.repeated = map[string]bool{}
		}
		p.repeated[card+string(l.kind)] = true
		return e, Reported
	}
	return collector.Event{}, Unrelated
}
