package sim

import (
	"strings"
)

var (
	deviceArg   = Arg{Name: "device", Help: "index, UUID, PCI address, 4/0 for a MIG device, or all"}
	anyDevice   = Arg{Name: "device", Help: "only calls on this device, and lookups of it by the call named", Optional: true}
	callFlag    = Flag{Name: "call", Help: "only this function, e.g. nvmlDeviceGetMemoryInfo"}
	countFlag   = Flag{Name: "count", Help: "how many", Default: "1"}
	giFlag      = Flag{Name: "gi", Help: "GPU instance id"}
	ciFlag      = Flag{Name: "ci", Help: "compute instance id"}
	eventTypes  = map[string]uint64{"ecc-single": 0x1, "ecc-double": 0x2, "pstate": 0x4, "xid": 0x8, "clock": 0x10, "power-source": 0x80, "mig-config": 0x100, "ecc-storm": 0x200, "dram-retirement": 0x400, "dram-retirement-failure": 0x800, "poison": 0x1000, "poison-fatal": 0x2000, "gpu-unavailable": 0x4000, "recovery-action": 0x8000}
	actions     = []string{"none", "reset", "reboot", "drain-p2p", "drain-and-reset", "recover-imex"}
	fabricState = []string{"not-supported", "not-started", "in-progress", "completed"}
	throttles   = []string{"idle", "app-clocks", "sw-power-cap", "hw-slowdown", "sync-boost", "sw-thermal", "hw-thermal", "hw-power-brake", "display"}
	locations   = []string{"l1", "l2", "dram", "register", "texture", "shm", "cbu", "sram"}
)

// Faults are all that `accel-sim inject` knows, in the order of its help.
var Faults = []Fault{
	{
		Name: "xid", Help: "deliver a Xid event to every registered event set", apply: injectXid,
		Args: []Arg{{Name: "code", Help: "Xid number"}, deviceArg}, Flags: []Flag{giFlag, ciFlag, countFlag},
	},
	{
		Name: "event", Help: "deliver any NVML event: ecc-double, mig-config, gpu-unavailable, … or a bit", apply: injectEvent,
		Args: []Arg{{Name: "type", Help: "name or bit mask"}, deviceArg}, Flags: []Flag{{Name: "data", Help: "event data", Default: "0"}, giFlag, ciFlag, countFlag},
	},
	{Name: "lost", Help: "the GPU fell off the bus: every call on it answers GPU_IS_LOST", apply: flagOn("lost", "1"), Args: []Arg{deviceArg}},
	{Name: "reset-required", Help: "every call on the GPU answers RESET_REQUIRED", apply: flagOn("reset_required", "1"), Args: []Arg{deviceArg}},
	{Name: "gone", Help: "the GPU is not enumerated any more", apply: injectGone("1", 1), Args: []Arg{deviceArg}},
	{Name: "return", Help: "a GPU that was gone is enumerated again", apply: injectGone("", 2), Args: []Arg{deviceArg}},
	{
		Name: "hang", Help: "calls block, for ever or for a time; `clear` wakes them", apply: injectCallFault("hang"),
		Args: []Arg{deviceArg}, Flags: []Flag{{Name: "for", Help: "duration; for ever without it"}, callFlag},
	},
	{Name: "init-hang", Help: "nvmlInit blocks", apply: injectInitHang, Flags: []Flag{{Name: "for", Help: "duration; for ever without it"}}},
	{
		Name: "slow", Help: "calls take longer", apply: injectCallFault("slow"),
		Args: []Arg{deviceArg}, Flags: []Flag{{Name: "delay", Help: "how much longer", Default: "50ms"}, callFlag},
	},
	{
		Name: "crash", Help: "the next call ends the process by SIGSEGV, once", apply: injectCrash, Args: []Arg{anyDevice},
		Flags: []Flag{{Name: "how", Help: "signal, or dereference: what a runtime's own handler makes of a bad pointer", Default: "signal"}, callFlag},
	},
	{
		Name: "exit", Help: "the next call exits the process, once; 127 is what a missing symbol does", apply: injectCallFault("exit"),
		Args: []Arg{anyDevice}, Flags: []Flag{{Name: "code", Help: "exit status", Default: "127"}, callFlag},
	},
	{Name: "kill", Help: "the next call ends the process by SIGKILL, once, as the OOM killer does", apply: injectCallFault("kill"), Args: []Arg{anyDevice}, Flags: []Flag{callFlag}},
	{
		Name: "not-supported", Help: "a function answers NOT_SUPPORTED", apply: injectNotSupported,
		Args: []Arg{{Name: "call", Help: "function, e.g. nvmlDeviceGetPowerUsage"}, anyDevice},
	},
	{
		Name: "error", Help: "a function answers any nvmlReturn_t, by name or number", apply: injectCallFault("error"),
		Args: []Arg{{Name: "call", Help: "function"}, {Name: "code", Help: "e.g. NO_PERMISSION or 999"}, anyDevice},
	},
	{
		Name: "field", Help: "a field of nvmlDeviceGetFieldValues answers a value or error:NAME", apply: injectNumbered("field"),
		Args: []Arg{{Name: "id", Help: "field id"}, {Name: "value", Help: "value"}, deviceArg},
	},
	{
		Name: "gpm", Help: "a GPM metric answers a value or error:NAME", apply: injectNumbered("gpm"),
		Args: []Arg{{Name: "id", Help: "metric id"}, {Name: "value", Help: "value"}, deviceArg},
	},
	{
		Name: "set", Help: "give any modelled value another course, absurd ones too: -1, 1e30, nan, blank, error:NAME", apply: injectSet,
		Args: []Arg{{Name: "key", Help: "temperature, power, util, memory or a key of keys.def"}, {Name: "value", Help: "value"}, deviceArg},
	},
	{Name: "driver-mismatch", Help: "library and driver differ: init and all calls answer LIB_RM_VERSION_MISMATCH", apply: driverState("mismatch")},
	{Name: "driver-unload", Help: "the driver is unloaded: init and all calls answer DRIVER_NOT_LOADED", apply: driverState("unloaded")},
	{
		Name: "driver-reload", Help: "the driver is loaded anew: old handles die, volatile counters restart", apply: injectReload,
		Flags: []Flag{{Name: "driver", Help: "the version it has then"}},
	},
	{
		Name: "mig", Help: "reshape MIG at run time: profiles by comma, or off; fires the MIG event", apply: injectMIG,
		Args: []Arg{deviceArg, {Name: "layout", Help: "e.g. 3g.40gb,2g.20gb,1g.10gb, 3g.40gb:1c+2c, empty, on or off"}}, Flags: []Flag{{Name: "pending", Help: "true: change the pending mode only", Default: "false"}},
	},
	{
		Name: "recovery-action", Help: "what the driver asks for (field 230): none, reset, reboot, drain-p2p, drain-and-reset, recover-imex", apply: injectRecovery,
		Args: []Arg{{Name: "action", Help: "name or number"}, deviceArg},
	},
	{
		Name: "ecc", Help: "count ECC errors, corrected or uncorrected, and fire their event", apply: injectECC,
		Args: []Arg{{Name: "type", Help: "corrected or uncorrected"}, deviceArg}, Flags: []Flag{{Name: "location", Help: strings.Join(locations, ", "), Default: "dram"}, countFlag},
	},
	{
		Name: "remap", Help: "remap rows: counts, pending, failure", apply: injectRemap, Args: []Arg{deviceArg},
		Flags: []Flag{{Name: "correctable", Help: "how many more"}, {Name: "uncorrectable", Help: "how many more"}, {Name: "pending", Help: "0 or 1"}, {Name: "failure", Help: "0 or 1"}},
	},
	{
		Name: "throttle", Help: "a clock event reason holds, and its nanoseconds run", apply: injectThrottle,
		Args: []Arg{{Name: "reason", Help: strings.Join(throttles, ", ")}, deviceArg, {Name: "switch", Help: "on or off", Optional: true, Default: "on"}},
	},
	{
		Name: "pcie-link", Help: "the PCIe link trains to another generation and width", apply: injectPCIe,
		Args: []Arg{{Name: "generation", Help: "1 to 6"}, {Name: "width", Help: "1 to 16"}, deviceArg},
	},
	{
		Name: "nvlink", Help: "an NVLink goes down or up, or counts errors", apply: injectNVLink,
		Args:  []Arg{{Name: "link", Help: "link number"}, {Name: "what", Help: "down, up or errors"}, deviceArg},
		Flags: []Flag{{Name: "counter", Help: "crc_flit, crc_data, replay, recovery, ecc_data, or field.ID for NVLink 5"}, countFlag},
	},
	{Name: "advance", Help: "move a clock that --frozen stopped", apply: injectAdvance, Args: []Arg{{Name: "seconds", Help: "how far"}}},
	{
		Name: "fabric", Help: "the fabric's state: not-supported, not-started, in-progress, completed", apply: injectFabric,
		Args: []Arg{{Name: "state", Help: "name or number"}, deviceArg}, Flags: []Flag{{Name: "status", Help: "nvmlReturn_t of the registration"}, {Name: "mask", Help: "health mask"}, {Name: "summary", Help: "health summary: 1 healthy, 2 unhealthy, 3 limited"}},
	},
}
