package sim

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

var (
	deviceArg   = Arg{Name: "device", Help: "index, UUID, PCI address, 4/0 for a MIG device, or all"}
	anyDevice   = Arg{Name: "device", Help: "only calls on this device", Optional: true}
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
var Faults []Fault

func init() {
	Faults = []Fault{
		{Name: "xid", Help: "deliver a Xid event to every registered event set", apply: injectXid,
			Args: []Arg{{Name: "code", Help: "Xid number"}, deviceArg}, Flags: []Flag{giFlag, ciFlag, countFlag}},
		{Name: "event", Help: "deliver any NVML event: ecc-double, mig-config, gpu-unavailable, … or a bit", apply: injectEvent,
			Args: []Arg{{Name: "type", Help: "name or bit mask"}, deviceArg}, Flags: []Flag{{Name: "data", Help: "event data", Default: "0"}, giFlag, ciFlag, countFlag}},
		{Name: "lost", Help: "the GPU fell off the bus: every call on it answers GPU_IS_LOST", apply: flagOn("lost", "1"), Args: []Arg{deviceArg}},
		{Name: "reset-required", Help: "every call on the GPU answers RESET_REQUIRED", apply: flagOn("reset_required", "1"), Args: []Arg{deviceArg}},
		{Name: "gone", Help: "the GPU is not enumerated any more", apply: injectGone("1", 1), Args: []Arg{deviceArg}},
		{Name: "return", Help: "a GPU that was gone is enumerated again", apply: injectGone("", 2), Args: []Arg{deviceArg}},
		{Name: "hang", Help: "calls block, for ever or for a time; `clear` wakes them", apply: injectCallFault("hang"),
			Args: []Arg{deviceArg}, Flags: []Flag{{Name: "for", Help: "duration; for ever without it"}, callFlag}},
		{Name: "init-hang", Help: "nvmlInit blocks", apply: injectInitHang, Flags: []Flag{{Name: "for", Help: "duration; for ever without it"}}},
		{Name: "slow", Help: "calls take longer", apply: injectCallFault("slow"),
			Args: []Arg{deviceArg}, Flags: []Flag{{Name: "delay", Help: "how much longer", Default: "50ms"}, callFlag}},
		{Name: "crash", Help: "the next call ends the process by SIGSEGV, once", apply: injectCallFault("crash"), Args: []Arg{anyDevice}, Flags: []Flag{callFlag}},
		{Name: "exit", Help: "the next call exits the process, once; 127 is what a missing symbol does", apply: injectCallFault("exit"),
			Args: []Arg{anyDevice}, Flags: []Flag{{Name: "code", Help: "exit status", Default: "127"}, callFlag}},
		{Name: "kill", Help: "the next call ends the process by SIGKILL, once, as the OOM killer does", apply: injectCallFault("kill"), Args: []Arg{anyDevice}, Flags: []Flag{callFlag}},
		{Name: "not-supported", Help: "a function answers NOT_SUPPORTED", apply: injectNotSupported,
			Args: []Arg{{Name: "call", Help: "function, e.g. nvmlDeviceGetPowerUsage"}, anyDevice}},
		{Name: "error", Help: "a function answers any nvmlReturn_t, by name or number", apply: injectCallFault("error"),
			Args: []Arg{{Name: "call", Help: "function"}, {Name: "code", Help: "e.g. NO_PERMISSION or 999"}, anyDevice}},
		{Name: "field", Help: "a field of nvmlDeviceGetFieldValues answers a value or error:NAME", apply: injectNumbered("field"),
			Args: []Arg{{Name: "id", Help: "field id"}, {Name: "value", Help: "value"}, deviceArg}},
		{Name: "gpm", Help: "a GPM metric answers a value or error:NAME", apply: injectNumbered("gpm"),
			Args: []Arg{{Name: "id", Help: "metric id"}, {Name: "value", Help: "value"}, deviceArg}},
		{Name: "set", Help: "give any modelled value another course, absurd ones too: -1, 1e30, nan, blank, error:NAME", apply: injectSet,
			Args: []Arg{{Name: "key", Help: "temperature, power, util, memory or a key of keys.def"}, {Name: "value", Help: "value"}, deviceArg}},
		{Name: "driver-mismatch", Help: "library and driver differ: init and all calls answer LIB_RM_VERSION_MISMATCH", apply: driverState("mismatch")},
		{Name: "driver-unload", Help: "the driver is unloaded: init and all calls answer DRIVER_NOT_LOADED", apply: driverState("unloaded")},
		{Name: "driver-reload", Help: "the driver is loaded anew: old handles die, volatile counters restart", apply: injectReload,
			Flags: []Flag{{Name: "version", Help: "the driver's new version"}}},
		{Name: "mig", Help: "reshape MIG at run time: profiles by comma, or off; fires the MIG event", apply: injectMIG,
			Args: []Arg{deviceArg, {Name: "layout", Help: "e.g. 3g.40gb,2g.20gb,1g.10gb, 3g.40gb:1c+2c, empty, on or off"}}, Flags: []Flag{{Name: "pending", Help: "true: change the pending mode only", Default: "false"}}},
		{Name: "recovery-action", Help: "what the driver asks for (field 230): none, reset, reboot, drain-p2p, drain-and-reset, recover-imex", apply: injectRecovery,
			Args: []Arg{{Name: "action", Help: "name or number"}, deviceArg}},
		{Name: "ecc", Help: "count ECC errors, corrected or uncorrected, and fire their event", apply: injectECC,
			Args: []Arg{{Name: "type", Help: "corrected or uncorrected"}, deviceArg}, Flags: []Flag{{Name: "location", Help: strings.Join(locations, ", "), Default: "dram"}, countFlag}},
		{Name: "remap", Help: "remap rows: counts, pending, failure", apply: injectRemap, Args: []Arg{deviceArg},
			Flags: []Flag{{Name: "correctable", Help: "how many more"}, {Name: "uncorrectable", Help: "how many more"}, {Name: "pending", Help: "0 or 1"}, {Name: "failure", Help: "0 or 1"}}},
		{Name: "throttle", Help: "a clock event reason holds, and its nanoseconds run", apply: injectThrottle,
			Args: []Arg{{Name: "reason", Help: strings.Join(throttles, ", ")}, deviceArg, {Name: "switch", Help: "on or off", Optional: true, Default: "on"}}},
		{Name: "pcie-link", Help: "the PCIe link trains to another generation and width", apply: injectPCIe,
			Args: []Arg{{Name: "generation", Help: "1 to 6"}, {Name: "width", Help: "1 to 16"}, deviceArg}},
		{Name: "nvlink", Help: "an NVLink goes down or up, or counts errors", apply: injectNVLink,
			Args:  []Arg{{Name: "link", Help: "link number"}, {Name: "what", Help: "down, up or errors"}, deviceArg},
			Flags: []Flag{{Name: "counter", Help: "crc_flit, crc_data, replay, recovery, ecc_data, or field.ID for NVLink 5"}, countFlag}},
		{Name: "fabric", Help: "the fabric's state: not-supported, not-started, in-progress, completed", apply: injectFabric,
			Args: []Arg{{Name: "state", Help: "name or number"}, deviceArg}, Flags: []Flag{{Name: "status", Help: "nvmlReturn_t of the registration"}, {Name: "mask", Help: "health mask"}, {Name: "summary", Help: "health summary: 1 healthy, 2 unhealthy, 3 limited"}}},
	}
}

const keptEvents = 2000

// addEvent appends to the log that the libraries' event sets read.
func (s *State) addEvent(gpu int, kind, data uint64, gi, ci string) {
	seq := s.integer("seq") + 1
	s.Set("seq", strconv.FormatInt(seq, 10))
	rec := fmt.Sprintf("gpu=%d type=%d data=%d", gpu, kind, data)
	if gi != "" {
		rec += " gi=" + gi
	}
	if ci != "" {
		rec += " ci=" + ci
	}
	s.Set(fmt.Sprintf("event.%d", seq), rec)
	s.Delete(fmt.Sprintf("event.%d", seq-keptEvents))
}

// onGPUs does something to each GPU that the device argument names.
func (s *State) onGPUs(in input, f func(device) error) error {
	ds, err := s.devices(in["device"])
	if err != nil {
		return err
	}
	for _, d := range ds {
		if err := f(d); err != nil {
			return err
		}
	}
	return nil
}

func injectXid(s *State, in input) error {
	code, err := in.integer("code")
	if err != nil {
		return err
	}
	return s.deliver(in, eventTypes["xid"], code)
}

func injectEvent(s *State, in input) error {
	kind, ok := eventTypes[in["type"]]
	if !ok {
		var err error
		if kind, err = in.integer("type"); err != nil {
			names := make([]string, 0, len(eventTypes))
			for n := range eventTypes {
				names = append(names, n)
			}
			return fmt.Errorf("type: want a bit mask or one of %s, found %q", strings.Join(sorted(names), ", "), in["type"])
		}
	}
	data, err := in.integer("data")
	if err != nil {
		return err
	}
	return s.deliver(in, kind, data)
}

func (s *State) deliver(in input, kind, data uint64) error {
	n, err := in.integer("count")
	if err != nil {
		return err
	}
	if n > keptEvents {
		return fmt.Errorf("count: the log keeps %d events, found %d", keptEvents, n)
	}
	return s.onGPUs(in, func(d device) error {
		gi, ci := in["gi"], in["ci"]
		if d.mig >= 0 {
			rec := s.Get(fmt.Sprintf("gpu.%d.mig.%d", d.gpu, d.mig))
			gi, ci = attr(rec, "gi"), attr(rec, "ci")
		}
		for range n {
			s.addEvent(d.gpu, kind, data, gi, ci)
		}
		return nil
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

// injectGone also tells the system event sets: the driver was unbound or bound.
func injectGone(value string, event uint64) func(*State, input) error {
	return func(s *State, in input) error {
		return s.onGPUs(in, func(d device) error {
			key := fmt.Sprintf("gpu.%d.gone", d.gpu)
			if value == "" {
				s.Delete(key)
				s.Delete(fmt.Sprintf("gpu.%d.lost", d.gpu))
			} else {
				s.Set(key, value)
			}
			s.addEvent(-1, event, uint64(d.gpu), "", "")
			return nil
		})
	}
}

// injectCallFault records faults that the library applies as a call begins.
func injectCallFault(kind string) func(*State, input) error {
	return func(s *State, in input) error {
		rec := "kind=" + kind
		if in["call"] != "" {
			if !strings.HasPrefix(in["call"], "nvml") {
				return fmt.Errorf("call: want the name of an NVML function, found %q", in["call"])
			}
			rec += " call=" + in["call"]
		}
		hold, err := in.duration("for")
		if err != nil {
			return err
		}
		if hold > 0 {
			rec += fmt.Sprintf(" until=%d", time.Now().Add(hold).UnixNano())
		}
		delay, err := in.duration("delay")
		if err != nil {
			return err
		}
		rec += fmt.Sprintf(" delay=%d", delay.Nanoseconds())
		if in["code"] != "" {
			code, err := ParseReturn(in["code"])
			if err != nil {
				return err
			}
			rec += fmt.Sprintf(" code=%d", code)
		}
		if in["device"] == "" || in["device"] == "all" {
			s.addFault(rec)
			return nil
		}
		return s.onGPUs(in, func(d device) error {
			s.addFault(fmt.Sprintf("%s gpu=%d mig=%d", rec, d.gpu, d.mig))
			return nil
		})
	}
}

func (s *State) addFault(rec string) {
	n := s.integer("fault_seq") + 1
	s.Set("fault_seq", strconv.FormatInt(n, 10))
	s.Set(fmt.Sprintf("fault.%d", n), rec)
}

func injectInitHang(s *State, in input) error {
	in["call"] = "nvmlInit"
	return injectCallFault("hang")(s, in)
}

func injectNotSupported(s *State, in input) error {
	in["code"] = "NOT_SUPPORTED"
	return injectCallFault("error")(s, in)
}

func injectNumbered(kind string) func(*State, input) error {
	return func(s *State, in input) error {
		in["key"] = kind + "." + in["id"]
		return injectSet(s, in)
	}
}

func injectSet(s *State, in input) error {
	key := in["key"]
	if a, ok := aliases[key]; ok {
		key = a
	}
	signal, err := checkValue(key, in["value"])
	if err != nil {
		return err
	}
	return s.onGPUs(in, func(d device) error { return s.set(d, key, signal) })
}

func driverState(state string) func(*State, input) error {
	return func(s *State, _ input) error {
		s.Set("driver.state", state)
		return nil
	}
}

func injectReload(s *State, in input) error {
	s.Set("driver.state", "loaded")
	s.Set("driver.generation", strconv.FormatInt(s.integer("driver.generation")+1, 10))
	s.Set("driver.loaded_at", strconv.FormatFloat(s.now(), 'f', 3, 64))
	if in["version"] != "" {
		s.Set("driver.version", in["version"])
	}
	for i := range s.gpus() {
		s.Delete(fmt.Sprintf("gpu.%d.reset_required", i))
		for _, key := range valueKeys {
			if strings.HasPrefix(key, "ecc.volatile.") || strings.HasPrefix(key, "sram.volatile.") {
				if v := s.last(device{i, -1}, key); v != "" && !strings.HasPrefix(v, "error:") {
					s.setAt(i, fmt.Sprintf("gpu.%d.%s", i, key), key, "0")
				}
			}
		}
	}
	return nil
}

func injectMIG(s *State, in input) error {
	return s.onGPUs(in, func(d device) error {
		mode := "1"
		if in["layout"] == "off" {
			mode = "0"
		}
		if s.gpuGet(d.gpu, "mig.max_devices") == "" {
			return fmt.Errorf("gpu %d (%s) has no MIG", d.gpu, s.gpuGet(d.gpu, "name"))
		}
		s.Set(fmt.Sprintf("gpu.%d.mig.pending", d.gpu), mode)
		if in["pending"] == "true" {
			return nil
		}
		var items []string
		if in["layout"] != "off" && in["layout"] != "on" && in["layout"] != "empty" {
			items = strings.Split(in["layout"], ",")
		}
		if err := s.setMIG(d.gpu, items); err != nil {
			return err
		}
		s.Set(fmt.Sprintf("gpu.%d.mig.mode", d.gpu), mode)
		for _, key := range s.keys(fmt.Sprintf("gpu.%d.process.", d.gpu)) {
			s.Delete(key) // a GPU is reshaped only when idle
		}
		s.addEvent(d.gpu, eventTypes["mig-config"], 0, "", "")
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
		return s.set(device{d.gpu, -1}, "recovery_action", strconv.Itoa(n))
	})
}

func injectECC(s *State, in input) error {
	kind, err := in.one("type", []string{"corrected", "uncorrected"})
	if err != nil {
		return err
	}
	where, err := in.one("location", locations)
	if err != nil {
		return err
	}
	n, err := in.integer("count")
	if err != nil {
		return err
	}
	name := []string{"corrected", "uncorrected"}[kind]
	return s.onGPUs(in, func(d device) error {
		gpu := device{d.gpu, -1}
		if d.mig >= 0 {
			if kind == 0 || locations[where] != "sram" {
				return fmt.Errorf("a MIG device counts uncorrected sram errors only")
			}
			if err := s.add(d, "ecc.volatile.uncorrected.sram", n); err != nil {
				return err
			}
		}
		keys := []string{"ecc.volatile." + name + "." + locations[where], "ecc.aggregate." + name + "." + locations[where]}
		if kind == 1 && locations[where] == "sram" {
			keys = append(keys, "sram.volatile.secded", "sram.aggregate.secded", "sram.bucket.sm")
		}
		for _, k := range keys {
			if err := s.add(gpu, k, n); err != nil {
				return err
			}
		}
		s.addEvent(d.gpu, uint64(kind+1), n, "", "")
		return nil
	})
}

func injectRemap(s *State, in input) error {
	return s.onGPUs(in, func(d device) error {
		d.mig = -1
		for _, key := range []string{"correctable", "uncorrectable", "pending", "failure"} {
			if in[key] == "" {
				continue
			}
			n, err := in.integer(key)
			if err != nil {
				return err
			}
			if key == "pending" || key == "failure" {
				err = s.set(d, "remap."+key, strconv.FormatUint(n, 10))
			} else {
				err = s.add(d, "remap."+key, n)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func injectThrottle(s *State, in input) error {
	n, err := in.one("reason", throttles)
	if err != nil {
		return err
	}
	off, err := in.one("switch", []string{"on", "off"})
	if err != nil {
		return err
	}
	return s.onGPUs(in, func(d device) error {
		return s.set(device{d.gpu, -1}, "throttle."+strings.ReplaceAll(throttles[n], "-", "_"), strconv.Itoa(1-off))
	})
}

func injectPCIe(s *State, in input) error {
	gen, err := in.integer("generation")
	if err != nil {
		return err
	}
	width, err := in.integer("width")
	if err != nil {
		return err
	}
	return s.onGPUs(in, func(d device) error {
		d.mig = -1
		if err := s.set(d, "pcie.generation", strconv.FormatUint(gen, 10)); err != nil {
			return err
		}
		return s.set(d, "pcie.width", strconv.FormatUint(width, 10))
	})
}

func injectNVLink(s *State, in input) error {
	link, err := in.integer("link")
	if err != nil {
		return err
	}
	what, err := in.one("what", []string{"down", "up", "errors"})
	if err != nil {
		return err
	}
	n, err := in.integer("count")
	if err != nil {
		return err
	}
	return s.onGPUs(in, func(d device) error {
		d.mig = -1
		links, _ := strconv.ParseUint(s.gpuGet(d.gpu, "nvlink.count"), 10, 64)
		if link >= links {
			return fmt.Errorf("link: gpu %d has %d links, found %d", d.gpu, links, link)
		}
		if what < 2 {
			return s.set(d, fmt.Sprintf("link.%d.state", link), strconv.Itoa(what))
		}
		counter := in["counter"]
		if counter == "" {
			counter = "crc_flit"
			if s.gpuGet(d.gpu, "nvlink.counters") == "5" {
				counter = "field.208"
			}
		}
		key := fmt.Sprintf("link.%d.%s", link, counter)
		if !numeric(key) {
			return fmt.Errorf("counter: want one of %s or field.ID, found %q", strings.Join(linkKeys, ", "), counter)
		}
		return s.add(d, key, n)
	})
}

func injectFabric(s *State, in input) error {
	state, err := in.one("state", fabricState)
	if err != nil {
		return err
	}
	return s.onGPUs(in, func(d device) error {
		d.mig = -1
		if err := s.set(d, "fabric.state", strconv.Itoa(state)); err != nil {
			return err
		}
		for flag, key := range map[string]string{"status": "fabric.status", "mask": "fabric.health_mask", "summary": "fabric.health_summary"} {
			if in[flag] == "" {
				continue
			}
			value := in[flag]
			if flag == "status" {
				code, err := ParseReturn(value)
				if err != nil {
					return err
				}
				value = strconv.Itoa(code)
			}
			signal, err := checkValue(key, value)
			if err != nil {
				return err
			}
			if err := s.set(d, key, signal); err != nil {
				return err
			}
		}
		return nil
	})
}
