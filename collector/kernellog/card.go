package kernellog

import (
	"strings"

	"github.com/accel-exporter/accel-exporter/collector"
)

// cardDriver is the driver of XRT that manages an Alveo card. It watches the
// firewalls and the sensors of the card.
const cardDriver = "xclmgmt"

// card parses a line of that driver, after the names of its units:
//
//	xclmgmt 0000:3b:00.0: firewall.m.12583169 ffff9a: check_firewall: AXI Firewall 5 tripped, status: 0x80004
//	xclmgmt 0000:3b:00.0: Card shutting down! Power or temp exceeds the limit
func card(text string) (collector.Event, Outcome) {
	m := deviceLine.FindStringSubmatch(text)
	if m == nil || m[1] != cardDriver {
		return collector.Event{}, Unrelated
	}
	e := collector.Event{PCI: address(m[2:]), Detail: detail(text)}
	_, firewall, found := strings.Cut(m[6], "AXI Firewall ")
	switch {
	case found && strings.Contains(firewall, " tripped"):
		e.Kind = collector.EventFirewall
	case strings.Contains(m[6], "Card shutting down!"):
		e.Kind = collector.EventThermalShutdown
	default:
		return collector.Event{}, Unrelated
	}
	return e, Reported
}
