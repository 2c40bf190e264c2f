package sim

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/accel-exporter/accel-exporter/internal/sim/faketree"
)

// eventTypes are the bits of NVML's events.
var eventTypes = map[string]uint64{
	"ecc-single": 0x1, "ecc-double": 0x2, "pstate": 0x4, "xid": 0x8, "clock": 0x10, "power-source": 0x80, "mig-config": 0x100,
	"ecc-storm": 0x200, "dram-retirement": 0x400, "dram-retirement-failure": 0x800, "poison": 0x1000, "poison-fatal": 0x2000,
	"gpu-unavailable": 0x4000, "recovery-action": 0x8000,
}

var actions = []string{"none", "reset", "reboot", "drain-p2p", "drain-and-reset", "recover-imex", "bus-reset", "system-reboot"}

// eventFaults are faults of GPUs that fail or go, and events.
var eventFaults = []Fault{
	{
		Name: "xid", Help: "deliver a Xid event to every registered event set", apply: injectXid,
		Args:  []Arg{{Name: "code", Help: "Xid number"}, deviceArg},
		Flags: []Flag{{Name: "gi", Help: "GPU instance id"}, countFlag, logFlag},
	},
	{
		Name: "event", Help: "deliver any NVML event: ecc-double, mig-config, gpu-unavailable, … or a bit mask", apply: injectEvent,
		Args: []Arg{{Name: "type", Help: "name or bit mask"}, deviceArg}, Flags: []Flag{{Name: "data", Help: "event data", Default: "0"}, countFlag},
	},
	{
		Name: "operational-event", Help: "deliver a GPU Operational Event: informational, corrected, recoverable, fatal, or the number of another severity", apply: injectOperational,
		Args: []Arg{{Name: "severity", Help: "name or number"}, deviceArg},
		Flags: []Flag{
			{Name: "is", Help: "propagated, simulated or overflow; or several of them, separated by commas"},
			{Name: "xid", Help: "the Xid of the same incident", Default: "0"},
		},
	},
	{Name: "lost", Help: "the GPU fell off the bus: every call on it returns GPU_IS_LOST", apply: injectLost, Args: []Arg{deviceArg}, Flags: []Flag{logFlag, {Name: "uuid", Help: "/proc still shows its UUID, as for a GPU that has been initialized", Default: "true"}}},
	{Name: "reset-required", Help: "every call on the GPU returns RESET_REQUIRED", apply: flagOn("reset_required", "1"), Args: []Arg{deviceArg}},
	{
		Name: "gone", Help: "the GPU is no longer enumerated", apply: injectGone(true), Args: []Arg{deviceArg},
		Flags: []Flag{{Name: "driver", Help: "the kernel driver that it is bound to then, such as vfio-pci, or none", Default: "nvidia"}},
	},
	{Name: "return", Help: "a removed GPU is enumerated again", apply: injectGone(false), Args: []Arg{deviceArg}},
	{
		Name: "recovery-action", Help: "the driver's recovery action (field 230): none, reset, reboot, drain-p2p, drain-and-reset, recover-imex, bus-reset, system-reboot", apply: injectRecovery,
		Args: []Arg{{Name: "action", Help: "name or number"}, deviceArg}, Flags: []Flag{logFlag},
	},
}

// maxXid is far above the largest code of NVIDIA's list.
const maxXid = 999

func injectXid(s *State, in input) error {
	code, err := in.whole("code")
	if err != nil || code == 0 || code > maxXid {
		return fmt.Errorf("code: want the number of a Xid from 1 to %d, found %q", maxXid, in["code"])
	}
	if err := s.deliver(in, eventTypes["xid"], code); err != nil {
		return err
	}
	return s.onGPUs(in, func(d device) error {
		s.pluginSees(d, code)
		return nil
	})
}

func injectLost(s *State, in input) error {
	return s.onGPUs(in, func(d device) error {
		s.Set(fmt.Sprintf("gpu.%d.lost", d.gpu), "1")
		if !in.on("uuid") {
			s.Set(fmt.Sprintf("gpu.%d.unnamed", d.gpu), "1")
		}
		s.logLost(d.gpu, in)
		return s.onTree(func(tree *faketree.Tree) error {
			s.tellAll(tree)
			// Every register of a GPU that does not answer reads as ones.
			if dir, ok := tree.Real("/sys/bus/pci/devices/" + s.address(d.gpu)); ok {
				tree.Set(dir+"/current_link_speed", "Unknown\n")
				tree.Set(dir+"/current_link_width", "63\n")
			}
			return nil
		})
	})
}

func injectEvent(s *State, in input) error {
	kind, ok := eventTypes[in["type"]]
	if !ok {
		var err error
		if kind, err = in.whole("type"); err != nil {
			return fmt.Errorf("type: want a bit mask or one of %s, found %q", strings.Join(slices.Sorted(maps.Keys(eventTypes)), ", "), in["type"])
		}
	}
	data, err := in.whole("data")
	if err != nil {
		return err
	}
	return s.deliver(in, kind, data)
}

func injectOperational(s *State, in input) error {
	severity, ok := map[string]uint64{"informational": 10, "corrected": 20, "recoverable": 30, "fatal": 40}[in["severity"]]
	if !ok {
		var err error
		if severity, err = in.whole("severity"); err != nil || severity == 0 {
			return fmt.Errorf("severity: want informational, corrected, recoverable, fatal or a number above 0, found %q", in["severity"])
		}
	}
	xid, err := in.whole("xid")
	if err != nil {
		return err
	}
	attributes, group := 0, 0
	for _, is := range strings.FieldsFunc(in["is"], func(r rune) bool { return r == ',' }) {
		switch is {
		case "propagated":
			attributes |= 1 << 2
		case "overflow":
			attributes |= 1 << 6
		case "simulated":
			group |= 1 << 2
		default:
			return fmt.Errorf("is: want propagated, simulated or overflow, found %q", is)
		}
	}
	return s.onGPUs(in, func(d device) error {
		s.addEvent(d.gpu, 0, 0x17, "", "", fmt.Sprintf("severity=%d attributes=%d group=%d xid=%d", severity, attributes, group, xid))
		return nil
	})
}

func (s *State) deliver(in input, kind, data uint64) error {
	n, err := in.whole("count")
	if err != nil {
		return err
	}
	if n > keptEvents {
		return fmt.Errorf("count: the log keeps %d events, found %d", keptEvents, n)
	}
	return s.onGPUs(in, func(d device) error {
		gi, ci := in["gi"], ""
		if d.mig >= 0 {
			rec := s.Get(fmt.Sprintf("gpu.%d.mig.%d", d.gpu, d.mig))
			gi, ci = attr(rec, "gi"), attr(rec, "ci")
		}
		for range n {
			s.addEvent(d.gpu, kind, data, gi, ci)
			if kind == eventTypes["xid"] {
				s.logXid(d, data, gi, ci, in)
			}
		}
		return nil
	})
}

func injectRecovery(s *State, in input) error {
	n, err := in.one("action", actions)
	if err != nil {
		return err
	}
	return s.onGPUs(in, func(d device) error {
		s.addEvent(d.gpu, eventTypes["recovery-action"], uint64(n), "", "")
		s.logRecovery(d.gpu, int64(n), in)
		return s.set(device{d.gpu, -1}, "recovery_action", strconv.Itoa(n))
	})
}

func flagOn(key, value string) func(*State, input) error {
	return func(s *State, in input) error {
		return s.onGPUs(in, func(d device) error {
			s.Set(fmt.Sprintf("gpu.%d.%s", d.gpu, key), value)
			return nil
		})
	}
}

// injectGone makes NVML forget a GPU, which may be bound to another driver then, or list
// it again.
func injectGone(gone bool) func(*State, input) error {
	return func(s *State, in input) error {
		return s.onGPUs(in, func(d device) error {
			key := fmt.Sprintf("gpu.%d.gone", d.gpu)
			if gone {
				s.Set(key, "1")
				s.Set(boundKey(d.gpu), in["driver"])
			} else {
				s.Delete(key)
				s.Delete(boundKey(d.gpu))
				s.Delete(fmt.Sprintf("gpu.%d.lost", d.gpu))
			}
			return s.showDriver()
		})
	}
}
