package sim

import (
	"fmt"
	"strings"
	"time"
)

var (
	anyDevice = Arg{Name: "device", Help: "only calls on this device, and lookups of it by the named call", Optional: true}
	callFlag  = Flag{Name: "call", Help: "only this function, e.g. nvmlDeviceGetMemoryInfo"}
)

// callFaults are faults of calls of NVML.
var callFaults = []Fault{
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
		Flags: []Flag{callFlag},
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
}

// callFault records a fault that a library applies at the start of a call: of
// NVML by default, of DCGM for a pattern of its functions. code parses the
// argument code, which the state has as a number.
func callFault(s *State, kind, call string, in input, code func(string) (int, error), filter func(device) error) error {
	rec := "kind=" + kind
	if call != "" {
		rec += " call=" + call
	}
	lasts, err := in.duration("for")
	if err != nil {
		return err
	}
	delay, err := in.duration("delay")
	if err != nil {
		return err
	}
	if lasts > 0 {
		rec += fmt.Sprintf(" until=%d", time.Now().Add(lasts).UnixNano())
	}
	rec += fmt.Sprintf(" delay=%d", delay.Nanoseconds())
	if in["code"] != "" {
		n, err := code(in["code"])
		if err != nil {
			return err
		}
		rec += fmt.Sprintf(" code=%d", n)
	}
	if in["device"] == "" || in["device"] == "all" {
		s.addFault(rec)
		return nil
	}
	return s.onGPUs(in, func(d device) error {
		if err := filter(d); err != nil {
			return err
		}
		s.addFault(fmt.Sprintf("%s gpu=%d mig=%d", rec, d.gpu, d.mig))
		return nil
	})
}

func nvmlFault(kind string) func(*State, input) error {
	return func(s *State, in input) error {
		call := in["call"]
		if call != "" && !strings.HasPrefix(call, "nvml") {
			return fmt.Errorf("call: want the name of an NVML function, found %q", call)
		}
		return callFault(s, kind, call, in, ParseReturn, func(d device) error { return filterable(call, d) })
	}
}

// systemCalls are the prefixes of the functions without a device.
var systemCalls = []string{
	"nvmlInit", "nvmlShutdown", "nvmlErrorString", "nvmlSystem", "nvmlEventSet", "nvmlDeviceGetCount",
	"nvmlGetExcludedDevice", "nvmlGpmSampleAlloc", "nvmlGpmSampleFree", "nvmlUnit",
}

// filterable rejects a fault that would never apply: a device for a call
// without one.
func filterable(call string, d device) error {
	if d.mig >= 0 && strings.HasPrefix(call, "nvmlDeviceGetHandleBy") {
		return fmt.Errorf("call: %s looks up a whole GPU; name GPU %d, not its MIG device", call, d.gpu)
	}
	for _, prefix := range systemCalls {
		if strings.HasPrefix(call, prefix) && call != "nvmlSystemGetCPER_v1" { // of the GPU that it names
			return fmt.Errorf("call: %s has no device to go by; leave DEVICE out or give all, "+
				"or name a function that takes a device or looks one up (nvmlDeviceGetHandleBy...)", call)
		}
	}
	return nil
}
