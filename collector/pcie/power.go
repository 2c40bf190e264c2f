package pcie

import "strings"

// powerStates are the values of the label state, as power_state has them in
// upper case (pci_power_names in drivers/pci/pci.h).
var powerStates = []string{"d0", "d1", "d2", "d3hot", "d3cold", "unknown", "error"}

// power is what the kernel keeps in memory of a function's sleep. Reading it
// touches no hardware.
type power struct {
	// state is one of powerStates, or empty.
	state string
	// status is power/runtime_status: active, suspended, suspending, resuming,
	// error, unsupported; or empty.
	status string
}

// awake reports whether configuration space can be read without waking the
// function or a port above it. The kernel resumes a function in D3cold before
// it reads link attributes, and one that is neither known to be awake nor
// known not to sleep is left alone.
func (p power) awake() bool {
	switch p.status {
	case "active":
		return p.state == "d0" || p.state == "unknown" || p.state == ""
	case "unsupported", "error", "":
		return p.state == "d0"
	}
	return false
}

// suspended reports whether runtime power management has put the function to
// sleep, and whether it says.
func (p power) suspended() (asleep, known bool) {
	switch p.status {
	case "suspended", "suspending":
		return true, true
	case "active", "resuming":
		return false, true
	}
	return false, false
}

func parsePowerState(s string) (string, bool) {
	s = strings.ToLower(s)
	for _, known := range powerStates {
		if s == known {
			return known, true
		}
	}
	return "", false
}
