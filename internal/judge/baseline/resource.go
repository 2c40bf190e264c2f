package baseline

import (
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strings"
)

// Expectation is the design that the name of a Kubernetes resource encodes. A
// field that is not encoded is empty.
type Expectation struct {
	// Interface is the interface that the accelerator function is built for: 32
	// lower-case hexadecimal digits, as in compat_id of fpga_region.
	Interface string
	// AFU is the accelerator function: 32 lower-case hexadecimal digits, as in
	// afu_id of dfl-port.
	AFU string
	// Shell is the name of the shell (VBNV) of an Alveo card.
	Shell string
	// ShellTimestamp is when the shell was built, in seconds since the epoch.
	ShellTimestamp string
}

const (
	intelFunction = "fpga.intel.com/af-"
	intelRegion   = "fpga.intel.com/region-"
)

var (
	hexID = lazily(`^[0-9a-f]{32}$`)
	// alveo is the format of the resources of AMD's device plugin: the shell and
	// the timestamp of its build.
	alveo = lazily(`^(?:xilinx\.com/fpga-|amd\.com/)(xilinx_[a-z0-9_-]*[a-z0-9_])-([0-9]+)$`)
)

// ExpectationFromResource decodes a resource name. It knows the names of Intel's
// FPGA plugin in the modes af and region and of AMD's plugin for Alveo cards,
// and returns false for all others and for names that cannot be decoded.
func ExpectationFromResource(resource string) (Expectation, bool) {
	if name, ok := strings.CutPrefix(resource, intelFunction); ok {
		return function(name)
	}
	if name, ok := strings.CutPrefix(resource, intelRegion); ok {
		return Expectation{Interface: name}, hexID().MatchString(name)
	}
	if m := alveo().FindStringSubmatch(resource); m != nil {
		return Expectation{Shell: m[1], ShellTimestamp: m[2]}, true
	}
	return Expectation{}, false
}

// function decodes the first three digits of both ids and then both ids in
// base64, separated by dots. The digits are for readers and must match the ids.
func function(name string) (Expectation, bool) {
	parts := strings.Split(name, ".")
	if len(parts) != 3 {
		return Expectation{}, false
	}
	ids, err := base64.RawURLEncoding.Strict().DecodeString(parts[2])
	if err != nil || len(ids) != 32 || len(parts[2]) != base64.RawURLEncoding.EncodedLen(32) {
		return Expectation{}, false
	}
	e := Expectation{Interface: hex.EncodeToString(ids[:16]), AFU: hex.EncodeToString(ids[16:])}
	if e.Interface[:3] != parts[0] || e.AFU[:3] != parts[1] {
		return Expectation{}, false
	}
	return e, true
}

// expectations returns the designs that some of the resource names encode.
func expectations(resources []string) []Expectation {
	var list []Expectation
	for _, resource := range resources {
		if e, ok := ExpectationFromResource(resource); ok {
			list = append(list, e)
		}
	}
	return list
}

// promised compares the bitstreams of a device with designs: one region must
// match each of them. While a region is empty or being configured, a mismatch of
// the other regions is not drift.
func promised(designs []Expectation, facts []fact, anyEmpty bool) []comparison {
	var out []comparison
	for _, p := range []struct {
		name, kind string // kind is that of accel_fpga_bitstream_info
		of         func(Expectation) string
	}{
		{"afu", "afu", func(e Expectation) string { return e.AFU }},
		{"interface", "pr_interface", func(e Expectation) string { return e.Interface }},
		{"shell", "shell", func(e Expectation) string { return e.Shell }},
		{"shell_timestamp", "shell_timestamp", func(e Expectation) string { return e.ShellTimestamp }},
	} {
		var expected, actual []string
		for _, e := range designs {
			expected = appendNew(expected, p.of(e))
		}
		for _, f := range facts {
			if f.section == sectionBitstream && strings.HasSuffix(f.name, "/"+p.kind) {
				actual = appendNew(actual, f.value)
			}
		}
		matches := !slices.ContainsFunc(expected, func(want string) bool {
			return !slices.ContainsFunc(actual, func(id string) bool { return plainID(id) == want })
		})
		if len(expected) == 0 || len(actual) == 0 || !matches && anyEmpty {
			continue
		}
		slices.Sort(expected)
		slices.Sort(actual)
		out = append(out, comparison{component: "held/" + p.name, expected: list(expected), actual: list(actual), drift: !matches})
	}
	return out
}

// appendNew appends a text that is not in the list yet.
func appendNew[S ~string](list []S, s S) []S {
	if s == "" || slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}
