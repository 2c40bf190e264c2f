package health

import (
	"fmt"
	"slices"
	"strings"

	"github.com/accel-exporter/accel-exporter/internal/config/strict/wording"
)

// Severity is the state that a single fact gives a device.
type Severity uint8

const (
	unset Severity = iota
	// None means that the fact does not affect the device.
	None
	// Degraded means that running work continues, possibly slower; the device needs
	// attention.
	Degraded
	// Failed means that running work stops, or its results cannot be trusted.
	Failed
)

var severities = []string{Degraded: "degraded", Failed: "failed", None: "none"}

// String returns the name in the catalogue.
func (s Severity) String() string { return severities[s] }

// UnmarshalText parses a name of the catalogue.
func (s *Severity) UnmarshalText(text []byte) error {
	i, err := pick(string(text), severities)
	*s = Severity(i)
	return err
}

// Action is a recommended action that makes a device healthy again.
type Action uint8

// The actions, from the cheapest to the most expensive. If several apply, the
// last one is recommended: it includes the others or makes them unnecessary.
const (
	unsetAction Action = iota
	NoAction
	Inspect        // run the vendor's diagnostic, check the board, its power, cooling and cables
	UpdateSoftware // driver, firmware or guest are incompatible
	RestartApp     // restart the programs on the device
	DrainP2P       // stop the traffic between GPUs, then check what the driver recommends
	RecoverIMEX    // recover the IMEX domain
	Reprogram      // load the design of the FPGA again
	DrainAndReset  // let running work finish, then reset the device
	Reset          // reset the device now
	RestartVM      // restart the virtual machine
	Reboot         // restart the node, with a power cycle if possible
	Replace        // replace the board
)

var actions = []string{
	NoAction: "none", Inspect: "inspect", UpdateSoftware: "update_software", RestartApp: "restart_app",
	DrainP2P: "drain_p2p", RecoverIMEX: "recover_imex_domain", Reprogram: "reprogram",
	DrainAndReset: "drain_and_reset", Reset: "reset", RestartVM: "restart_vm", Reboot: "reboot", Replace: "replace",
}

// String returns the value of the label action.
func (a Action) String() string { return actions[a] }

// UnmarshalText parses a value of the label action.
func (a *Action) UnmarshalText(text []byte) error {
	i, err := pick(string(text), actions)
	*a = Action(i)
	return err
}

// actionOf returns the recovery action that the driver calls text, unsetAction
// if it is not one, and Inspect if it is newer than this version.
func actionOf(text string) Action {
	switch text {
	case "other":
		return Inspect
	case "bus_reset": // by the platform: the device cannot reset itself
		return Reset
	case "system_reboot": // not only of the virtual machine
		return Reboot
	}
	a := Action(max(0, slices.Index(actions, text)))
	if _, known := recoveryActions[a]; !known && a != NoAction {
		return unsetAction
	}
	return a
}

// pick returns the index of text in names.
func pick(text string, names []string) (int, error) {
	if i := slices.Index(names, text); i > 0 {
		return i, nil
	}
	return 0, fmt.Errorf("found %s; accepted is one of %s", wording.Quote(text), strings.Join(names[1:], ", "))
}

// waits reports whether running work may continue before an action of the driver.
func (a Action) waits() bool {
	return a == NoAction || a == DrainP2P || a == DrainAndReset || a == RecoverIMEX
}

// recoveryActions maps the recovery actions of the driver to the reasons that
// they give. A device that must be drained still works.
var recoveryActions = map[Action]struct {
	code, text string
	severity   Severity
}{
	Reset:         {"recovery_action_reset", "the driver recommends a reset of the device", Failed},
	Reboot:        {"recovery_action_reboot", "the driver recommends a reboot of the node", Failed},
	DrainP2P:      {"recovery_action_drain_p2p", "the driver recommends to stop the traffic between GPUs, then reports the next action", Degraded},
	DrainAndReset: {"recovery_action_drain_and_reset", "the driver recommends a reset once running work has finished", Degraded},
	RecoverIMEX:   {"recovery_action_recover_imex_domain", "the driver recommends to recover the IMEX domain", Degraded},
	Inspect:       {"recovery_action_other", "the driver recommends a recovery action that this version of the exporter does not know; nvidia-smi -q names it", Degraded},
}
