package sim

import (
	"slices"
	"strings"
)

var (
	deviceArg   = Arg{Name: "device", Help: "index, UUID, PCI address, 4/0 for a MIG device, or all"}
	anyDevice   = Arg{Name: "device", Help: "only calls on this device, and lookups of it by the named call", Optional: true}
	callFlag    = Flag{Name: "call", Help: "only this function, e.g. nvmlDeviceGetMemoryInfo"}
	countFlag   = Flag{Name: "count", Help: "how many", Default: "1"}
	logFlag     = Flag{Name: "log", Help: "also write it to the kernel log", Default: "true"}
	busArg      = Arg{Name: "device", Help: "GPU by index, UUID or PCI address; FPGA card; any PCI address"}
	cardArg     = Arg{Name: "card", Help: "FPGA by number, by (part of) the name of its tree, or by address"}
	giFlag      = Flag{Name: "gi", Help: "GPU instance id"}
	ciFlag      = Flag{Name: "ci", Help: "compute instance id"}
	resourceArg = Arg{Name: "resource", Help: "name of a resource, or a pattern such as nvidia.com/*"}
	kubeletFor  = Flag{Name: "for", Help: "duration; until kubelet-up by default"}
	eventTypes  = map[string]uint64{"ecc-single": 0x1, "ecc-double": 0x2, "pstate": 0x4, "xid": 0x8, "clock": 0x10, "power-source": 0x80, "mig-config": 0x100, "ecc-storm": 0x200, "dram-retirement": 0x400, "dram-retirement-failure": 0x800, "poison": 0x1000, "poison-fatal": 0x2000, "gpu-unavailable": 0x4000, "recovery-action": 0x8000}
	actions     = []string{"none", "reset", "reboot", "drain-p2p", "drain-and-reset", "recover-imex"}
	fabricState = []string{"not-supported", "not-started", "in-progress", "completed"}
	throttles   = []string{"idle", "app-clocks", "sw-power-cap", "hw-slowdown", "sync-boost", "sw-thermal", "hw-thermal", "hw-power-brake", "display"}
	locations   = []string{"l1", "l2", "dram", "register", "texture", "shm", "cbu", "sram"}
)

// Faults are all faults of `accel-sim inject`, in the order of its help.
var Faults = slices.Concat(machineFaults, amdFaults, dcgmFaults)

var machineFaults = []Fault{
	{
		Name: "xid", Help: "deliver a Xid event to every registered event set", apply: injectXid,
		Args:  []Arg{{Name: "code", Help: "Xid number"}, deviceArg},
		Flags: []Flag{giFlag, ciFlag, countFlag, logFlag, {Name: "detail", Help: "text of the kernel's line"}, {Name: "cause", Help: "the Xid that caused it, as R595 prints it"}},
	},
	{
		Name: "event", Help: "deliver any NVML event: ecc-double, mig-config, gpu-unavailable, … or a bit mask", apply: injectEvent,
		Args: []Arg{{Name: "type", Help: "name or bit mask"}, deviceArg}, Flags: []Flag{{Name: "data", Help: "event data", Default: "0"}, giFlag, ciFlag, countFlag},
	},
	{Name: "lost", Help: "the GPU fell off the bus: every call on it returns GPU_IS_LOST", apply: injectLost, Args: []Arg{deviceArg}, Flags: []Flag{logFlag, {Name: "uuid", Help: "/proc still shows its UUID, as for a GPU that has been initialized", Default: "true"}}},
	{Name: "reset-required", Help: "every call on the GPU returns RESET_REQUIRED", apply: flagOn("reset_required", "1"), Args: []Arg{deviceArg}},
	{Name: "gone", Help: "the GPU is no longer enumerated", apply: injectGone("1", 1), Args: []Arg{deviceArg}},
	{Name: "return", Help: "a removed GPU is enumerated again", apply: injectGone("", 2), Args: []Arg{deviceArg}},
	{
		Name: "hang", Help: "calls block, forever or for a time; `clear` ends it", apply: nvmlFault("hang"),
		Args: []Arg{deviceArg}, Flags: []Flag{{Name: "for", Help: "duration; forever by default"}, callFlag},
	},
	{
		Name: "slow", Help: "calls take longer", apply: nvmlFault("slow"),
		Args: []Arg{deviceArg}, Flags: []Flag{{Name: "delay", Help: "how much longer", Default: "50ms"}, callFlag},
	},
	{
		Name: "crash", Help: "the next call ends the process by SIGSEGV, once", apply: nvmlFault("crash"), Args: []Arg{anyDevice},
		Flags: []Flag{{Name: "how", Help: "signal, or dereference: a bad pointer, handled by the runtime", Default: "signal"}, callFlag},
	},
	{
		Name: "exit", Help: "the next call exits the process, once; 127 as for a missing symbol", apply: nvmlFault("exit"),
		Args: []Arg{anyDevice}, Flags: []Flag{{Name: "code", Help: "exit status", Default: "127"}, callFlag},
	},
	{Name: "kill", Help: "the next call ends the process by SIGKILL, once, as the OOM killer does", apply: nvmlFault("kill"), Args: []Arg{anyDevice}, Flags: []Flag{callFlag}},
	{
		Name: "error", Help: "a function returns any nvmlReturn_t, by name or number", apply: nvmlFault("error"),
		Args: []Arg{{Name: "call", Help: "function"}, {Name: "code", Help: "e.g. NO_PERMISSION or 999"}, anyDevice},
	},
	{
		Name: "field", Help: "a field of nvmlDeviceGetFieldValues returns a value or error:NAME", apply: injectField,
		Args: []Arg{{Name: "id", Help: "field id"}, {Name: "value", Help: "value"}, deviceArg},
	},
	{
		Name: "set", Help: "set any modelled value, including absurd ones: -1, 1e30, nan, blank, error:NAME", apply: injectSet,
		Args: []Arg{{Name: "key", Help: "temperature, power, util, memory or a key of keys.def"}, {Name: "value", Help: "value"}, deviceArg},
	},
	{Name: "driver-mismatch", Help: "the library is upgraded and the driver is not: init and all calls of devices return LIB_RM_VERSION_MISMATCH", apply: injectMismatch},
	{Name: "driver-unload", Help: "the driver is unloaded: init and all calls return DRIVER_NOT_LOADED", apply: injectUnload},
	{
		Name: "driver-reload", Help: "the driver is reloaded: old handles become invalid, volatile counters restart", apply: injectReload,
		Flags: []Flag{{Name: "driver", Help: "its version after the reload"}},
	},
	{
		Name: "quirk", Help: "the driver, or what it is called from, differs from the usual; `clear` does not end it", apply: injectQuirk,
		Args: []Arg{{Name: "quirk", Help: strings.Join(quirks, ", ")}, {Name: "switch", Help: "on or off", Optional: true, Default: "on"}},
	},
	{
		Name: "mig", Help: "reshape MIG at run time: profiles separated by commas, or off; fires the MIG event", apply: injectMIG,
		Args: []Arg{deviceArg, {Name: "layout", Help: "e.g. 3g.40gb,2g.20gb,1g.10gb, 3g.40gb:1c+2c, empty, on or off"}}, Flags: []Flag{{Name: "pending", Help: "true: change the pending mode only", Default: "false"}},
	},
	{
		Name: "recovery-action", Help: "the driver's recovery action (field 230): none, reset, reboot, drain-p2p, drain-and-reset, recover-imex", apply: injectRecovery,
		Args: []Arg{{Name: "action", Help: "name or number"}, deviceArg}, Flags: []Flag{logFlag},
	},
	{
		Name: "ecc", Help: "count ECC errors, corrected or uncorrected, and deliver their event", apply: injectECC,
		Args: []Arg{{Name: "type", Help: "corrected or uncorrected"}, deviceArg}, Flags: []Flag{{Name: "location", Help: strings.Join(locations, ", "), Default: "dram"}, countFlag},
	},
	{
		Name: "remap", Help: "remap rows: counts, pending, failure", apply: injectRemap, Args: []Arg{deviceArg},
		Flags: []Flag{{Name: "correctable", Help: "how many more"}, {Name: "uncorrectable", Help: "how many more"}, {Name: "pending", Help: "0 or 1"}, {Name: "failure", Help: "0 or 1"}},
	},
	{
		Name: "throttle", Help: "a clock event reason is active, and its nanoseconds increase", apply: injectThrottle,
		Args: []Arg{{Name: "reason", Help: strings.Join(throttles, ", ")}, deviceArg, {Name: "switch", Help: "on or off", Optional: true, Default: "on"}},
	},
	{
		Name: "nvlink", Help: "an NVLink is down or up, or counts errors", apply: injectNVLink,
		Args:  []Arg{{Name: "link", Help: "link number, or all for down and up"}, {Name: "what", Help: "down, up or errors"}, deviceArg},
		Flags: []Flag{{Name: "counter", Help: "crc_flit, crc_data, replay, recovery, ecc_data, or field.ID for NVLink 5"}, countFlag},
	},
	{Name: "advance", Help: "advance a clock stopped by --frozen", apply: injectAdvance, Args: []Arg{{Name: "seconds", Help: "how far"}}},
	{
		Name: "fabric", Help: "the fabric's state: not-supported, not-started, in-progress, completed", apply: injectFabric,
		Args: []Arg{{Name: "state", Help: "name or number"}, deviceArg}, Flags: []Flag{{Name: "status", Help: "nvmlReturn_t of the registration"}, {Name: "mask", Help: "health mask"}, {Name: "summary", Help: "health summary: 1 healthy, 2 unhealthy, 3 limited"}},
	},
	{
		Name: "device-file", Help: "the device file of a GPU is missing or has no permissions; requires a simulation with --dev", apply: injectDeviceFile,
		Args: []Arg{deviceArg, {Name: "state", Help: "present, missing or denied"}},
	},
	{Name: "kernel-log", Help: "the kernel logs a line", apply: injectLine, Args: []Arg{{Name: "text", Help: "the line", Rest: true}}, Flags: []Flag{countFlag}},
	{Name: "bus-loss", Help: "the device leaves the bus; NVML reports a GPU as lost", apply: onBus(loseOnBus), Args: []Arg{busArg}, Flags: []Flag{logFlag}},
	{
		Name: "aer", Help: "count a PCIe error of the device, and of the port above it", apply: onBus(countAER),
		Args:  []Arg{busArg, {Name: "severity", Help: "correctable, nonfatal or fatal"}},
		Flags: []Flag{{Name: "name", Help: "as in aer_dev_*, e.g. BadTLP or CmpltTO"}, countFlag, logFlag},
	},
	{
		Name: "link-degraded", Help: "the link trains to a lower width or speed, at both ends and in NVML", apply: onBus(degradeLink), Args: []Arg{busArg},
		Flags: []Flag{{Name: "width", Help: "lanes; 0: unchanged", Default: "4"}, {Name: "speed", Help: "generation; 0: unchanged", Default: "0"}},
	},
	{
		Name: "fpga-reconfigure", Help: "load another image; returns when it is loaded", apply: onCard(reconfigure), Args: []Arg{cardArg},
		Flags: []Flag{
			{Name: "afu", Help: "DFL: the accelerator function, 32 hexadecimal digits"},
			{Name: "uuid", Help: "XRT: the xclbin"},
			{Name: "firmware", Help: "fpga_manager: the bit file"},
			{Name: "duration", Help: "how long it takes", Default: "2s"},
			{Name: "fail", Help: "it fails", Default: "false"},
			{Name: "block", Help: "reads that wait for the driver's lock block, where the tree is mounted", Default: "true"},
		},
	},
	{Name: "fpga-firewall", Help: "the firewall of an XRT card trips", apply: onCard(tripFirewall), Args: []Arg{cardArg}},
	{
		Name: "fpga-error", Help: "latch bits of an error register of a DFL card", apply: onCard(latchErrors), Args: []Arg{cardArg, {Name: "bits", Help: "e.g. 0x80"}},
		Flags: []Flag{{Name: "register", Help: "port, fme, pcie0, pcie1, nonfatal or catfatal", Default: "port"}},
	},
	{Name: "fpga-temperature", Help: "set the fabric's temperature", apply: onCard(heat), Args: []Arg{cardArg, {Name: "celsius", Help: "degrees"}}},
	{
		Name: "pod-start", Help: "a pod starts with these devices, and the kubelet lists it", apply: startPod,
		Args: []Arg{{Name: "pod", Help: "NAMESPACE/NAME"}, {Name: "devices", Help: ReferenceHelp, Optional: true, Rest: true}},
		Flags: []Flag{
			{Name: "resource", Help: "name of the resource, if it is not that of the usual plugin"},
			{Name: "claim", Help: "allocate the devices by a claim of this name, of NVIDIA's DRA driver"},
			{Name: "container", Help: "the container's name", Default: "main"},
			{Name: "qos", Help: strings.Join(qosClasses, ", "), Default: "burstable"},
			{Name: "pid", Help: "start a process on each of its GPUs, with PIDs from this one on"},
			memFlag, shareFlag, loadFlag,
		},
	},
	{
		Name: "pod-finish", Help: "the containers of a pod end and the pod is not deleted yet; kubelets before 1.34 list it", apply: finishPod, Args: []Arg{podArg},
		Flags: []Flag{{Name: "listed", Help: "the kubelet still lists it", Default: "true"}},
	},
	{
		Name: "pod-evict", Help: "a pod is evicted, or dies of a fault: its processes end, and the kubelet no longer lists it", apply: onNode(evictPod), Args: []Arg{podArg},
		Flags: []Flag{{Name: "xid", Help: "its GPUs report this Xid first"}, {Name: "after", Help: "time from the Xid to the eviction", Default: "1s"}},
	},
	{Name: "pod-end", Help: "a pod ends and is deleted", apply: endPod, Args: []Arg{podArg}},
	{
		Name: "process-start", Help: "a process uses a GPU or a MIG device; a process of the host without --pod", apply: injectProcess, Args: []Arg{pidArg, deviceArg},
		Flags: []Flag{
			{Name: "pod", Help: "its pod, NAMESPACE/NAME"},
			{Name: "container", Help: "container of that pod; the first by default"},
			{Name: "type", Help: strings.Join(processTypes, ", "), Default: "compute"},
			{Name: "name", Help: "path of its program", Default: "/usr/bin/python3"},
			{Name: "uid", Help: "number of its user", Default: "0"},
			{Name: "slurm-job", Help: "number of its Slurm job, without --pod"},
			memFlag, shareFlag, loadFlag,
		},
	},
	{Name: "process-end", Help: "a process ends", apply: injectProcessEnd, Args: []Arg{pidArg}},
	{
		Name: "kubelet-restart", Help: "the kubelet restarts and for a time lists fewer pods than run; returns after that time", apply: onNode(restartKubelet),
		Flags: []Flag{{Name: "for", Help: "how long; 0s: until kubelet-up", Default: "10s"}, {Name: "pods", Help: "number of pods that it lists meanwhile", Default: "0"}},
	},
	{Name: "kubelet-down", Help: "the kubelet is down: nothing listens on its socket", apply: onNode(setKubelet("down")), Flags: []Flag{kubeletFor}},
	{Name: "kubelet-remove", Help: "the kubelet is down, and the directory of its socket is gone", apply: onNode(setKubelet("removed")), Flags: []Flag{kubeletFor}},
	{Name: "kubelet-up", Help: "the kubelet is up and answers correctly", apply: onNode(setKubelet("up"))},
	{Name: "kubelet-hang", Help: "the kubelet accepts calls and does not answer", apply: onNode(setKubelet("hang")), Flags: []Flag{kubeletFor}},
	{Name: "kubelet-garbage", Help: "the kubelet's answers are no PodResources", apply: onNode(setKubelet("garbage")), Flags: []Flag{kubeletFor}},
	{Name: "plugin-down", Help: "a device plugin ends until `clear`: its devices are not allocatable, existing allocations remain", apply: onNode(stopPlugin), Args: []Arg{resourceArg}},
	{
		Name: "api-server-down", Help: "the API server is down: a kubelet that restarts lists static pods only, until it is up", apply: onNode(setAPIServer(false)),
		Flags: []Flag{{Name: "for", Help: "duration; until api-server-up by default"}},
	},
	{Name: "api-server-up", Help: "the API server is up, and the kubelet lists all pods again", apply: onNode(setAPIServer(true))},
	{Name: "device-unhealthy", Help: "a device plugin reports a healthy device as unhealthy: it is no longer allocatable", apply: onNode(spoilDevice(false)), Args: []Arg{{Name: "device", Help: ReferenceHelp}}},
	{Name: "device-healthy", Help: "a device plugin reports a device as healthy, whatever its state, until `clear`", apply: onNode(spoilDevice(true)), Args: []Arg{{Name: "device", Help: ReferenceHelp}}},
}
