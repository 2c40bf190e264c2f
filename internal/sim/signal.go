package sim

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// SignalHelp is the syntax of values, for error messages and help. SECONDS and
// PERIOD are seconds, at least 0.001.
const SignalHelp = "a number, sine:BASE:AMPLITUDE:PERIOD[:PHASE], square:LOW:HIGH:PERIOD:DUTY[:PHASE], " +
	"steps:SECONDS:V1,V2,…, noise:BASE:AMPLITUDE:PERIOD[:SEED], ramp:BASE:PER_SECOND, model or error:NAME"

// shapes are the minimum and maximum number of parameters of each waveform.
var shapes = map[string][2]int{"sine": {3, 4}, "square": {4, 5}, "noise": {3, 4}, "ramp": {2, 2}}

// ParseSignal checks a value and returns it in the form of the state file. The
// error quotes the wrong part.
func ParseSignal(text string) (string, error) {
	if text == "model" {
		return text, nil
	}
	kind, rest, waveform := strings.Cut(text, ":")
	if !waveform {
		return parseConstant(text)
	}
	switch kind {
	case "error":
		code, err := ParseReturn(rest)
		return "error:" + strconv.Itoa(code), err
	case "steps":
		period, values, _ := strings.Cut(rest, ":")
		if err := numbers(text, append([]string{period}, strings.Split(values, ",")...)); err != nil {
			return "", err
		}
		return text, longEnough(text, period)
	}
	limits, ok := shapes[kind]
	if !ok {
		return "", fmt.Errorf("unknown value %q: want %s", text, SignalHelp)
	}
	parts := strings.Split(rest, ":")
	if len(parts) < limits[0] || len(parts) > limits[1] {
		return "", fmt.Errorf("%q has %d numbers: want %s", text, len(parts), SignalHelp)
	}
	if err := numbers(text, parts); err != nil {
		return "", err
	}
	if kind == "ramp" {
		return text, nil
	}
	return text, longEnough(text, parts[2])
}

func parseConstant(text string) (string, error) {
	if strings.EqualFold(text, "nan") {
		return "nan", nil
	}
	if _, err := strconv.ParseInt(text, 0, 64); err == nil {
		return text, nil
	}
	if _, err := strconv.ParseUint(text, 0, 64); err == nil {
		return text, nil
	}
	if _, err := strconv.ParseFloat(text, 64); err != nil || strings.ContainsAny(text, " \t") {
		return "", fmt.Errorf("unknown value %q: want %s", text, SignalHelp)
	}
	return text, nil
}

func numbers(text string, parts []string) error {
	for _, p := range parts {
		v, err := strconv.ParseFloat(p, 64)
		if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("%q in %q is no number", p, text)
		}
	}
	return nil
}

func longEnough(text, period string) error {
	if v, _ := strconv.ParseFloat(period, 64); v < 0.001 {
		return fmt.Errorf("the period in %q must be at least 0.001 s", text)
	}
	return nil
}

// returns are the nvmlReturn_t names without NVML_ERROR_, by number.
var returns = map[int]string{
	0: "SUCCESS", 1: "UNINITIALIZED", 2: "INVALID_ARGUMENT", 3: "NOT_SUPPORTED", 4: "NO_PERMISSION", 5: "ALREADY_INITIALIZED",
	6: "NOT_FOUND", 7: "INSUFFICIENT_SIZE", 8: "INSUFFICIENT_POWER", 9: "DRIVER_NOT_LOADED", 10: "TIMEOUT", 11: "IRQ_ISSUE",
	12: "LIBRARY_NOT_FOUND", 13: "FUNCTION_NOT_FOUND", 14: "CORRUPTED_INFOROM", 15: "GPU_IS_LOST", 16: "RESET_REQUIRED",
	17: "OPERATING_SYSTEM", 18: "LIB_RM_VERSION_MISMATCH", 19: "IN_USE", 20: "MEMORY", 21: "NO_DATA", 22: "VGPU_ECC_NOT_SUPPORTED",
	23: "INSUFFICIENT_RESOURCES", 24: "FREQ_NOT_SUPPORTED", 25: "ARGUMENT_VERSION_MISMATCH", 26: "DEPRECATED", 27: "NOT_READY",
	28: "GPU_NOT_FOUND", 29: "INVALID_STATE", 30: "RESET_TYPE_NOT_SUPPORTED", 999: "UNKNOWN",
}

// ParseReturn parses an nvmlReturn_t by number, 0 to 999, or name, in any case
// and with or without NVML_ERROR_.
func ParseReturn(text string) (int, error) {
	if n, err := strconv.Atoi(text); err == nil && n >= 0 && n <= 999 {
		return n, nil
	}
	want := strings.ToUpper(strings.ReplaceAll(text, "-", "_"))
	want = strings.TrimPrefix(strings.TrimPrefix(want, "NVML_"), "ERROR_")
	for n, name := range returns {
		if name == want {
			return n, nil
		}
	}
	return 0, fmt.Errorf("unknown return code %q: want a number or a name such as NOT_SUPPORTED, NO_DATA, GPU_IS_LOST, UNKNOWN", text)
}
