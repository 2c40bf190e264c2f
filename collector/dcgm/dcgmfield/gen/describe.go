package main

import (
	"regexp"
	"strings"
)

// description is a row without name and id.
type description struct{ kindOfValue, unit, kind, entity string }

func describe(f *field, m meta) description {
	d := description{kindOfValue: typeOf(f.name, m), entity: entityOf(m.entity)}
	switch d.kindOfValue {
	case "binary":
		d.kind, d.unit = "none", "-"
	case "string":
		d.kind, d.unit = "info", "-"
	default:
		d.unit, d.kind = unitOf(f, m.unit), kindOf(f)
	}
	return d
}

var types = map[string]string{
	"DCGM_FT_INT64": "int64", "DCGM_FT_DOUBLE": "double", "DCGM_FT_STRING": "string",
	"DCGM_FT_BINARY": "binary", "DCGM_FT_TIMESTAMP": "timestamp",
}

// typeOf derives a type from the name where the source does not state one.
func typeOf(name string, m meta) string {
	switch t := types[m.typ]; {
	case t != "":
		return t
	case strings.HasSuffix(name, "_RATIO"):
		return "double"
	}
	return "int64"
}

var entities = map[string]string{
	"DCGM_FE_NONE": "node", "DCGM_FE_GPU": "gpu", "DCGM_FE_VGPU": "vgpu", "DCGM_FE_SWITCH": "switch",
	"DCGM_FE_GPU_I": "gpu_instance", "DCGM_FE_GPU_CI": "compute_instance", "DCGM_FE_LINK": "link",
	"DCGM_FE_CPU": "cpu", "DCGM_FE_CPU_CORE": "cpu_core", "DCGM_FE_CONNECTX": "connectx",
}

func entityOf(e string) string {
	if e := entities[e]; e != "" {
		return e
	}
	return "gpu"
}

// unitRules are tried in order; the first that matches the name decides.
var unitRules = []struct {
	name *regexp.Regexp
	unit string
}{
	// The name says ratio; the value is still 0 to 100.
	{regexp.MustCompile(`^DCGM_FI_DEV_GPU_UTIL_RATIO$|_(MEM_COPY|ENC|DEC)_UTIL$|_FAN_SPEED$|_CACHE_(HIT|MISS)$|_PERCENT_`), "percent"},
	{regexp.MustCompile(`_RATIO$`), "ratio"},
	{regexp.MustCompile(`_CELSIUS$`), "celsius"},
	{regexp.MustCompile(`_WATTS$`), "watts"},
	{regexp.MustCompile(`_MVOLT$`), "millivolts"},
	{regexp.MustCompile(`_CPU_CLOCK_CURRENT$`), "kilohertz"},
	{regexp.MustCompile(`_HERTZ$`), "hertz"},
	{regexp.MustCompile(`_(SM|MEM|VIDEO)_CLOCK$`), "megahertz"},
	{regexp.MustCompile(`_ENERGY_CONSUMPTION$`), "millijoules"},
	{regexp.MustCompile(`_ENERGY_JOULES_TOTAL$`), "joules"},
	{regexp.MustCompile(`_VIOLATION$|_NS$`), "nanoseconds"},
	{regexp.MustCompile(`_TIME_SINCE_LAST$`), "seconds"},
	{regexp.MustCompile(`_TIME_BETWEEN_LAST_TWO$|_HYST_VAL$`), "milliseconds"},
	{regexp.MustCompile(`_RAMP_(UP|DOWN)_RATE$`), "milliwatts_per_second"},
	{regexp.MustCompile(`_DEV_FB_(TOTAL|FREE|USED|RESERVED)$|_DEV_BAR1_(TOTAL|USED|FREE)$`), "mebibytes"},
	{regexp.MustCompile(`_PROF_.*_BYTES(_PER_LINK)?$`), "bytes_per_second"},
	{regexp.MustCompile(`_BYTES(_TOTAL)?$`), "bytes"},
	{regexp.MustCompile(`_CYCLES_\w+_TOTAL$`), "cycles"},
	{regexp.MustCompile(`_PCIE_[TR]X_THROUGHPUT$`), "kilobytes_per_second"},
	{regexp.MustCompile(`_NVLINK_([TR]X_)?THROUGHPUT_|_MAX_BANDWIDTH$`), "megabytes_per_second"},
}

func unitOf(f *field, said string) string {
	for _, r := range unitRules {
		if r.name.MatchString(f.name) {
			return r.unit
		}
	}
	switch {
	case strings.Contains(said, "TEMP_C"), said == `"C"`:
		return "celsius"
	case strings.Contains(said, "POW_W"):
		return "watts"
	}
	return "-"
}

var (
	// The header calls these monotonic, counters or times since the driver
	// was loaded.
	counters = regexp.MustCompile(`_TOTAL$|_ECC_[SD]BE_(VOL|AGG)_|_VIOLATION$|_ENERGY_CONSUMPTION$|_REASON_\w+_NS$|_LINK_(NON_)?FATAL_ERRORS$|_LATENCY_(LOW|MEDIUM|HIGH|PANIC)_VC`)
	// Sums over links, and capacities.
	levels = regexp.MustCompile(`_THROUGHPUT_TOTAL$|_(FB|BAR1)_TOTAL$`)
)

func kindOf(f *field) string {
	if counters.MatchString(f.name) && !levels.MatchString(f.name) {
		return "counter"
	}
	return "gauge"
}
