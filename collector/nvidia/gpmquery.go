//go:build linux && cgo

package nvidia

/*
#cgo LDFLAGS: -ldl
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

static void *accel_gpm_symbol(void) { return dlsym(RTLD_DEFAULT, "nvmlGpmMetricsGet"); }

static int accel_gpm_metrics(void *f, void *query) { return ((int (*)(void *))f)(query); }
*/
import "C"

import (
	"reflect"
	"sync"
	"unsafe"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// gpmQuery is nvmlGpmMetricsGet_t. go-nvml copies its 13 KiB four times a call,
// which would dominate the cost of a round; this one is used in place. It
// contains only pointers of the library, as numbers, so that neither the
// garbage collector nor cgo's checks need to scan it.
type gpmQuery struct {
	version, count   uint32
	sample1, sample2 uintptr
	values           [333]gpmValue
}

// gpmValue is nvmlGpmMetric_t.
type gpmValue struct {
	id, ret uint32
	value   float64
	names   [3]uintptr
}

// gpmSymbol is nvmlGpmMetricsGet of the library, which is loaded by then.
var gpmSymbol = sync.OnceValue(func() unsafe.Pointer { return C.accel_gpm_symbol() })

// metricsGet is nvmlGpmMetricsGet.
func (q *gpmQuery) metricsGet() nvml.Return {
	f := gpmSymbol()
	if f == nil {
		return nvml.ERROR_FUNCTION_NOT_FOUND
	}
	return nvml.Return(C.accel_gpm_metrics(f, unsafe.Pointer(q)))
}

// sampleAddress is the library's pointer inside go-nvml's handle, a struct with
// one pointer.
func sampleAddress(s nvml.GpmSample) uintptr {
	v := reflect.ValueOf(s)
	if v.Kind() != reflect.Struct || v.NumField() != 1 || v.Field(0).Kind() != reflect.Pointer {
		return 0
	}
	return v.Field(0).Pointer()
}
