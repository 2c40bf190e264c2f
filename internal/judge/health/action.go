package health

import (
	"fmt"
	"slices"
	"strings"

	"github.com/accel-exporter/accel-exporter/internal/strict/wording"
)

// Severity is the state that a fact alone puts a device in.
type Severity uint8

const (
	unsaid Severity = iota
	// None speaks of something else than the device.
	None
	// Degraded: what runs on the device goes on, perhaps slower; it needs
	// attention.
	Degraded
	// Failed: what runs on the device does not go on, or its results cannot be
	// trusted.
	Failed
)

var severities = []string{Degraded: "degraded", Failed: "failed", None: "none"}

// String returns the name that the catalogue uses.
func (s Severity) String() string { return severities[s] }

// UnmarshalText takes a name.
func (s *Severity) UnmarshalText(text []byte) error {
	i, err := pick(string(text), severities)
	*s = Severity(i)
	return err
}

// Action is what would bring a device back to health.
type Action uint8

// The actions, from the one that costs least to the one that costs most. Of
// several, the last one is asked for: it does what those before it do, or
// makes them pointless.
const (
	unasked Action = iota
	NoAction
	Inspect         // run the vendor's diagnostic, look at the board, its power, cooling and cables
	UpdateSoftware  // driver, firmware or guest do not fit each other
	RestartApp      // end and start what ran on the device
	DrainP2P        // stop the traffic between GPUs, then see what the driver says
	RecoverIMEX     // recover the IMEX domain
	Reprogram       // load the FPGA's design anew
	DrainAndReset   // let running work end, then reset the device
	Reset           // reset the device now
	RestartVM       // restart the virtual machine
	Reboot          // restart the node, with its power off where that is possible
	Replace         // take the board out
	numberOfActions = iota
)

var actions = []string{
	NoAction: "none", Inspect: "inspect", UpdateSoftware: "update_software", RestartApp: "restart_app",
	DrainP2P: "drain_p2p", RecoverIMEX: "recover_imex_domain", Reprogram: "reprogram",
	DrainAndReset: "drain_and_reset", Reset: "reset", RestartVM: "restart_vm", Reboot: "reboot", Replace: "replace",
}

// String returns the value of the label action.
func (a Action) String() string { return actions[a] }

// UnmarshalText takes a value of the label action.
func (a *Action) UnmarshalText(text []byte) error {
	i, err := pick(string(text), actions)
	*a = Action(i)
	return err
}

// actionOf returns what the driver calls text, unasked where it is none of its
// words.
func actionOf(text string) Action {
	a := Action(max(0, slices.Index(actions, text)))
	if _, says := driverSays[a]; !says && a != NoAction {
		return unasked
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

// driverSays maps what the driver can ask for to what that says of the device.
// A device that must be drained still does its work.
var driverSays = map[Action]struct {
	code, text string
	severity   Severity
}{
	Reset:         {"recovery_action_reset", "the driver asks for a reset of the device", Failed},
	Reboot:        {"recovery_action_reboot", "the driver asks for a reboot of the node", Failed},
	DrainP2P:      {"recovery_action_drain_p2p", "the driver asks to stop traffic between GPUs, and will then say more", Degraded},
	DrainAndReset: {"recovery_action_drain_and_reset", "the driver asks for a reset once running work has ended", Degraded},
	RecoverIMEX:   {"recovery_action_recover_imex_domain", "the driver asks to recover the IMEX domain", Degraded},
}
