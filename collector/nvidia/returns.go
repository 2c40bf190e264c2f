//go:build linux && cgo

package nvidia

import "github.com/NVIDIA/go-nvml/pkg/nvml"

// codes are the values of the label code by nvmlReturn_t.
var codes = map[nvml.Return]string{
	nvml.ERROR_UNINITIALIZED:             "uninitialized",
	nvml.ERROR_INVALID_ARGUMENT:          "invalid_argument",
	nvml.ERROR_NOT_SUPPORTED:             "not_supported",
	nvml.ERROR_NO_PERMISSION:             "no_permission",
	nvml.ERROR_ALREADY_INITIALIZED:       "already_initialized",
	nvml.ERROR_NOT_FOUND:                 "not_found",
	nvml.ERROR_INSUFFICIENT_SIZE:         "insufficient_size",
	nvml.ERROR_INSUFFICIENT_POWER:        "insufficient_power",
	nvml.ERROR_DRIVER_NOT_LOADED:         "driver_not_loaded",
	nvml.ERROR_TIMEOUT:                   "timeout",
	nvml.ERROR_IRQ_ISSUE:                 "irq_issue",
	nvml.ERROR_LIBRARY_NOT_FOUND:         "library_not_found",
	nvml.ERROR_FUNCTION_NOT_FOUND:        "function_not_found",
	nvml.ERROR_CORRUPTED_INFOROM:         "corrupted_inforom",
	nvml.ERROR_GPU_IS_LOST:               "gpu_is_lost",
	nvml.ERROR_RESET_REQUIRED:            "reset_required",
	nvml.ERROR_OPERATING_SYSTEM:          "operating_system",
	nvml.ERROR_LIB_RM_VERSION_MISMATCH:   "lib_rm_version_mismatch",
	nvml.ERROR_IN_USE:                    "in_use",
	nvml.ERROR_MEMORY:                    "memory",
	nvml.ERROR_NO_DATA:                   "no_data",
	nvml.ERROR_VGPU_ECC_NOT_SUPPORTED:    "vgpu_ecc_not_supported",
	nvml.ERROR_INSUFFICIENT_RESOURCES:    "insufficient_resources",
	nvml.ERROR_FREQ_NOT_SUPPORTED:        "freq_not_supported",
	nvml.ERROR_ARGUMENT_VERSION_MISMATCH: "argument_version_mismatch",
	nvml.ERROR_DEPRECATED:                "deprecated",
	nvml.ERROR_NOT_READY:                 "not_ready",
	nvml.ERROR_GPU_NOT_FOUND:             "gpu_not_found",
	nvml.ERROR_INVALID_STATE:             "invalid_state",
	nvml.ERROR_RESET_TYPE_NOT_SUPPORTED:  "reset_type_not_supported",
	nvml.ERROR_UNKNOWN:                   "unknown",
}

// code returns the label value of ret. Codes that the header does not define
// share one name, so that the set of values stays closed.
func code(ret nvml.Return) string {
	if s, ok := codes[ret]; ok {
		return s
	}
	return "other"
}

// permanent reports whether ret will not change while the device stays the
// same, so that the call need not be repeated.
func permanent(ret nvml.Return) bool {
	switch ret {
	case nvml.ERROR_NOT_SUPPORTED, nvml.ERROR_FUNCTION_NOT_FOUND, nvml.ERROR_ARGUMENT_VERSION_MISMATCH,
		nvml.ERROR_DEPRECATED, nvml.ERROR_VGPU_ECC_NOT_SUPPORTED, nvml.ERROR_LIBRARY_NOT_FOUND:
		return true
	}
	return false
}

// fatal reports whether ret concerns the whole device, so that further calls in
// the round are pointless.
func fatal(ret nvml.Return) bool {
	return ret == nvml.ERROR_GPU_IS_LOST || ret == nvml.ERROR_RESET_REQUIRED
}

// stale reports whether ret means that the driver of the loaded library has
// been replaced. A single call of a single GPU may return it in error.
func stale(ret nvml.Return) bool {
	return ret == nvml.ERROR_UNINITIALIZED || ret == nvml.ERROR_DRIVER_NOT_LOADED || ret == nvml.ERROR_LIB_RM_VERSION_MISMATCH
}
