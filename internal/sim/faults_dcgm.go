package sim

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// dcgmReturns are the numbers of dcgmReturn_t, by their names without DCGM_ST_.
var dcgmReturns = map[string]int{
	"BADPARAM": -1, "GENERIC_ERROR": -3, "MEMORY": -4, "NOT_CONFIGURED": -5, "NOT_SUPPORTED": -6, "INIT_ERROR": -7,
	"NVML_ERROR": -8, "PENDING": -9, "UNINITIALIZED": -10, "TIMEOUT": -11, "VER_MISMATCH": -12, "UNKNOWN_FIELD": -13,
	"NO_DATA": -14, "STALE_DATA": -15, "NOT_WATCHED": -16, "NO_PERMISSION": -17, "GPU_IS_LOST": -18, "RESET_REQUIRED": -19,
	"FUNCTION_NOT_FOUND": -20, "CONNECTION_NOT_VALID": -21, "GPU_NOT_SUPPORTED": -22, "GROUP_INCOMPATIBLE": -23, "MAX_LIMIT": -24,
	"LIBRARY_NOT_FOUND": -25, "DUPLICATE_KEY": -26, "REQUIRES_ROOT": -29, "INSUFFICIENT_SIZE": -31, "FIELD_UNSUPPORTED_BY_API": -32,
	"MODULE_NOT_LOADED": -33, "IN_USE": -34, "GROUP_IS_EMPTY": -35, "PROFILING_NOT_SUPPORTED": -36, "PROFILING_LIBRARY_ERROR": -37,
	"PROFILING_MULTI_PASS": -38, "INSUFFICIENT_DRIVER_VERSION": -44, "INSTANCE_NOT_FOUND": -45, "INSUFFICIENT_RESOURCES": -49,
	"PAUSED": -54, "NVML_NOT_LOADED": -56, "NVML_DRIVER_TIMEOUT": -57, "GPUS_DETACHED": -67,
}

// dcgmBlanks are DCGM's marks for "no value".
var dcgmBlanks = []string{"blank", "not-found", "not-supported", "not-permissioned"}

var (
	engineStates    = []string{"up", "down", "restart", "disconnect"}
	profilingStates = []string{"free", "paused", "in-use"}

	dcgmCallFlag = Flag{Name: "call", Help: "only this function, e.g. dcgmEntitiesGetLatestValues"}
	dcgmDevice   = Arg{Name: "device", Help: "only calls that are about this GPU", Optional: true}
)

// dcgmFaults are the faults of the simulated libdcgm. Faults of NVML affect it
// too, because its engine calls NVML.
var dcgmFaults = []Fault{
	{
		Name: "dcgm-hang", Help: "calls of libdcgm block, forever or for a time; `clear` ends it", apply: dcgmFault("hang"),
		Args: []Arg{dcgmDevice}, Flags: []Flag{{Name: "for", Help: "duration; forever by default"}, dcgmCallFlag},
	},
	{
		Name: "dcgm-crash", Help: "the next call of libdcgm ends the process by SIGSEGV, once", apply: dcgmFault("crash"), Args: []Arg{dcgmDevice},
		Flags: []Flag{dcgmCallFlag},
	},
	{
		Name: "dcgm-error", Help: "a function of libdcgm returns any dcgmReturn_t, by name or number", apply: dcgmFault("error"),
		Args: []Arg{{Name: "call", Help: "function, or a pattern such as dcgmProf*"}, {Name: "code", Help: "e.g. NOT_SUPPORTED or -34"}, dcgmDevice},
	},
	{
		Name: "dcgm-engine", Help: "the host engine is " + strings.Join(engineStates, ", ") + ": connections end, and their watches with them", apply: injectEngine,
		Args: []Arg{{Name: "state", Help: strings.Join(engineStates, ", ")}},
	},
	{
		Name: "dcgm-field", Help: "a field of DCGM returns a value, a blank or a status", apply: injectDCGMField,
		Args: []Arg{
			{Name: "id", Help: "field id"},
			{Name: "value", Help: "a number, " + strings.Join(dcgmBlanks, ", ") + ", status:NAME, or a text for fields of text"},
			deviceArg,
		},
	},
	{
		Name: "dcgm-profiling", Help: "profiling is " + strings.Join(profilingStates, ", ") + " by another tool: then its fields are blank", apply: injectProfiling,
		Args: []Arg{{Name: "state", Help: strings.Join(profilingStates, ", ")}},
	},
	{
		Name: "dcgm-part", Help: "set a value of an NVSwitch or a CPU", apply: injectPart,
		Args:  []Arg{{Name: "part", Help: "switch:N or cpu:N"}, {Name: "key", Help: "e.g. temperature, fatal_error, link.crc_errors"}, {Name: "value", Help: "value"}},
		Flags: []Flag{{Name: "link", Help: "only of this link or core"}},
	},
}

func dcgmFault(kind string) func(*State, input) error {
	return func(s *State, in input) error {
		call := cmp.Or(in["call"], "dcgm*")
		if !strings.HasPrefix(call, "dcgm") {
			return fmt.Errorf("call: want the name of a function of libdcgm, found %q", call)
		}
		return callFault(s, kind, call, in, parseDCGMReturn, func(device) error { return nil })
	}
}

// parseDCGMReturn parses a dcgmReturn_t by number, -1 to -99, or name, in any
// case and with or without DCGM_ST_.
func parseDCGMReturn(text string) (int, error) {
	if n, err := strconv.Atoi(text); err == nil && n < 0 && n > -100 {
		return n, nil
	}
	name := strings.TrimPrefix(strings.ToUpper(strings.ReplaceAll(text, "-", "_")), "DCGM_ST_")
	if n, ok := dcgmReturns[name]; ok {
		return n, nil
	}
	return 0, fmt.Errorf("unknown return code %q: want -1 to -99 or one of %s", text, strings.Join(slices.Sorted(maps.Keys(dcgmReturns)), ", "))
}

func injectEngine(s *State, in input) error {
	n, err := in.one("state", engineStates)
	if err != nil {
		return err
	}
	state := engineStates[n]
	if state != "up" {
		s.Set("dcgm.generation", strconv.FormatInt(s.integer("dcgm.generation")+1, 10))
	}
	switch state {
	case "down":
		s.Set("dcgm.engine", state)
	case "up", "restart":
		s.Set("dcgm.engine", "up")
	}
	return nil
}

func injectDCGMField(s *State, in input) error {
	id, err := strconv.ParseUint(in["id"], 10, 16)
	if err != nil || id == 0 || id >= 2048 {
		return fmt.Errorf("id: want the number of a field of DCGM, 1 to 2047, found %q", in["id"])
	}
	value := in["value"]
	if name, ok := strings.CutPrefix(value, "status:"); ok {
		code, err := parseDCGMReturn(name)
		if err != nil {
			return err
		}
		value = "status:" + strconv.Itoa(code)
	}
	if strings.ContainsAny(value, " \t") {
		return fmt.Errorf("value: want no space in it, found %q", value)
	}
	rec := fmt.Sprintf("field=%d value=%s", id, value)
	if in["device"] == "all" {
		s.addDCGMValue(rec)
		return nil
	}
	return s.onGPUs(in, func(d device) error {
		s.addDCGMValue(fmt.Sprintf("%s gpu=%d", rec, d.gpu))
		return nil
	})
}

func (s *State) addDCGMValue(rec string) {
	n := s.integer("dcgm.value_seq") + 1
	s.Set("dcgm.value_seq", strconv.FormatInt(n, 10))
	s.Set(fmt.Sprintf("dcgm.value.%d", n), rec)
}

func injectProfiling(s *State, in input) error {
	n, err := in.one("state", profilingStates)
	if err == nil {
		s.Set("dcgm.profiling", profilingStates[n])
	}
	return err
}

// healDCGM removes the faults of DCGM. Broken connections stay broken.
func (s *State) healDCGM() {
	for _, key := range s.keys("dcgm.") {
		if key != "dcgm.generation" && key != "dcgm.value_seq" {
			s.Delete(key)
		}
	}
}

// healDCGMFields removes the faults of one GPU's fields.
func (s *State) healDCGMFields(gpu int) {
	for _, key := range s.keys("dcgm.value.") {
		if attr(s.Get(key), "gpu") == strconv.Itoa(gpu) {
			s.Delete(key)
		}
	}
}
