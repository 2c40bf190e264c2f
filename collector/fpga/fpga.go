// Package fpga is the Source of FPGA cards and of the FPGA part of SoCs, read
// from sysfs alone.
//
// It promises never to harm a card: a file is opened only where the allow-list
// of its driver's family names it, nothing is ever written, and no directory
// is walked for what it may hold. Reads of these drivers can block for seconds
// while a card is configured, so each card has a goroutine of its own, with
// one read at a time; a card whose read does not return is stuck and costs no
// other card its freshness.
//
// A card goes by its PCI address, or by the name of its platform device where
// it is no PCI device: a serial number cannot be read while the card is being
// configured, and numbers like fpga0 or hwmon3 are those of the order in which
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
	// Emit takes events; it must not block. Nil drops them.
	Emit func(collector.Event)
	// PollInterval is the time between two looks at the state of an FPGA
	// manager, by which a reconfiguration is timed; 150 ms where it is 0, no
	// polling where it is negative.
	PollInterval time.Duration
	// SlowInterval is the time between two readings of what changes slowly;
	// 10 s where it is not positive. Identities and what is costly to ask for
	// are read more rarely still.
	SlowInterval time.Duration
	// Firmware is a tree of the device tree, /sys/firmware/devicetree/base
	// mounted elsewhere, for containers, whose runtime hides /sys/firmware.
	// Empty means firmware/devicetree/base of the sysfs tree.
	Firmware string
	// Transactions has the transactions of DFL cards counted by their
	// performance monitoring unit. It takes CAP_PERFMON, and keeps others from
	// counting those of one port.
	Transactions bool
	// Wake is called when the kernel says that a device has come or gone, so
	// that a round may begin at once. The kernel's broadcasts are listened to
	// only where it is set, and where they cannot be had, it is not called.
	Wake func()

	perf perf // in the tests of this package another than the system's
}

const (
	defaultPollInterval = 150 * time.Millisecond
	defaultSlowInterval = 10 * time.Second
	// identityInterval is the time between two readings of what only a
	// firmware update changes.
	identityInterval = time.Minute
	// rareInterval is for reads that cost the card something.
	rareInterval = time.Hour
	// never stands for what does not change while a driver is bound.
	never = 1 << 62
)

// Bounds on what a machine can make the Source hold.
const (
	maxCards    = 64  // cards at a time
	maxMemories = 256 // cards remembered, present or not
	maxStuck    = 64  // goroutines of cards that have left and do not return
	maxErrors   = 8   // errors told per card and round
)
