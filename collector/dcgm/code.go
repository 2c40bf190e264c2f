package dcgm

import (
	"strconv"
	"strings"

	"github.com/accel-exporter/accel-exporter/collector"
)

// code is a dcgmReturn_t.
type code int32

const (
	ok                 code = 0
	badParam           code = -1
	genericError       code = -3
	notConfigured      code = -5
	notSupported       code = -6
	uninitialized      code = -10
	versionMismatch    code = -12
	unknownField       code = -13
	noData             code = -14
	staleData          code = -15
	notWatched         code = -16
	noPermission       code = -17
	gpuLost            code = -18
	functionNotFound   code = -20
	connectionInvalid  code = -21
	gpuNotSupported    code = -22
	maxLimit           code = -24
	libraryNotFound    code = -25
	requiresRoot       code = -29
	insufficientSize   code = -31
	fieldUnsupported   code = -32
	moduleNotLoaded    code = -33
	inUse              code = -34
	profilingNot       code = -36
	profilingError     code = -37
	profilingMultiPass code = -38
	insufficientDriver code = -44
	paused             code = -54
	// unheardOf is an error text of go-dcgm that the library does not have.
	unheardOf code = -1000
	// lowestCode bounds the codes whose texts are searched.
	lowestCode code = -100
)

// codes are the names of dcgm_structs.h without DCGM_ST_, lower case.
var codes = map[code]string{
	ok: "ok", badParam: "badparam", genericError: "generic_error", -4: "memory", notConfigured: "not_configured",
	notSupported: "not_supported", -7: "init_error", -8: "nvml_error", -9: "pending", uninitialized: "uninitialized",
	-11: "timeout", versionMismatch: "ver_mismatch", unknownField: "unknown_field", noData: "no_data", staleData: "stale_data",
	notWatched: "not_watched", noPermission: "no_permission", gpuLost: "gpu_is_lost", -19: "reset_required",
	functionNotFound: "function_not_found", connectionInvalid: "connection_not_valid", gpuNotSupported: "gpu_not_supported",
	-23: "group_incompatible", maxLimit: "max_limit", libraryNotFound: "library_not_found", -26: "duplicate_key",
	requiresRoot: "requires_root", -30: "nvvs_error", insufficientSize: "insufficient_size",
	fieldUnsupported: "field_unsupported_by_api", moduleNotLoaded: "module_not_loaded", inUse: "in_use",
	-35: "group_is_empty", profilingNot: "profiling_not_supported", profilingError: "profiling_library_error",
	profilingMultiPass: "profiling_multi_pass", insufficientDriver: "insufficient_driver_version",
	-45: "instance_not_found", -46: "compute_instance_not_found", -48: "3rd_party_library_error",
	-49: "insufficient_resources", paused: "paused", -55: "already_initialized", -56: "nvml_not_loaded",
	-57: "nvml_driver_timeout", -67: "gpus_detached", unheardOf: "unknown",
}

// String is the value of the label code.
func (c code) String() string {
	if name, known := codes[c]; known {
		return name
	}
	if c > 0 || c < lowestCode {
		return codes[unheardOf] // the set of labels must stay small
	}
	return "code_" + strconv.Itoa(int(-c))
}

// gone reports whether the connection is unusable.
func (c code) gone() bool { return c == connectionInvalid || c == uninitialized }

// lacking reports whether the device will never support the request.
func (c code) lacking() bool {
	switch c {
	case notSupported, unknownField, fieldUnsupported, gpuNotSupported, profilingNot, insufficientDriver, functionNotFound:
		return true
	}
	return false
}

// maxVersion bounds a version, in bytes.
const maxVersion = 64

// parseVersion returns the version in DCGM's build information: pairs of key
// and value, "version:4.5.1;arch:x86_64;…". It is empty where there is none.
func parseVersion(info string) string {
	for pair := range strings.SplitSeq(info, ";") {
		key, value, _ := strings.Cut(pair, ":")
		if strings.TrimSpace(key) != "version" {
			continue
		}
		value = strings.TrimSpace(value)
		if len(value) > maxVersion || strings.ContainsFunc(value, func(r rune) bool { return r <= ' ' || r > '~' }) {
			return ""
		}
		return value
	}
	return ""
}

// tally counts return codes other than success.
type tally []collector.CallError

// count counts a return code and reports whether it is success.
func (t *tally) count(call string, c code) bool {
	if c == ok {
		return true
	}
	name := c.String()
	for i := range *t {
		if e := &(*t)[i]; e.Call == call && e.Code == name {
			e.Count++
			return false
		}
	}
	*t = append(*t, collector.CallError{Call: call, Code: name, Count: 1})
	return false
}

// take returns the counts and resets them.
func (t *tally) take() []collector.CallError {
	counts := *t
	*t = nil
	return counts
}
