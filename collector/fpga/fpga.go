// Package fpga is the Source of FPGA cards and of the FPGA part of SoCs. It
// reads sysfs only.
//
// It never harms a card: a file is opened only where the allow-list of its
// driver's family names it, nothing is written, and no directory is searched
// recursively. Reads of these drivers can block for seconds while a card is
// configured, so each card has its own goroutine with one read at a time. A
// card whose read does not return is stuck and delays no other card.
//
// The id of a card is its PCI address, or the name of its platform device where
// it is no PCI device. A serial number cannot be read while the card is being
// configured, and numbers like fpga0 or hwmon3 depend on the order in which
// drivers were bound.
package fpga

import (
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
)

// Name is the value of the label source.
const Name = "fpga"

// Options configure a Source. The zero value is usable.
type Options struct {
	// Emit receives events; it must not block. Nil drops them.
	Emit func(collector.Event)
	// PollInterval is the time between two reads of the state of an FPGA
	// manager, which time a reconfiguration; 150 ms where it is 0, no polling
	// where it is negative.
	PollInterval time.Duration
	// SlowInterval is the time between two reads of slowly changing values; 10
	// s where it is not positive. Identities and expensive values are read less
	// often.
	SlowInterval time.Duration
	// Firmware is a device tree, /sys/firmware/devicetree/base mounted
	// elsewhere, for containers, whose runtime hides /sys/firmware. Empty:
	// firmware/devicetree/base of the sysfs tree.
	Firmware string
}

const (
	defaultPollInterval = 150 * time.Millisecond
	defaultSlowInterval = 10 * time.Second
	// identityInterval is the time between two reads of what only a firmware
	// update changes.
	identityInterval = time.Minute
)

// Bounds on what the Source keeps for a machine.
const (
	maxCards  = 64 // current cards
	maxErrors = 8  // errors returned per card and round
)
