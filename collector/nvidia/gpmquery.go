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

// gpmQuery is nvmlGpmMetricsGet_t. go-nvml copies its 19 KB three times in a call, which
// is half of what a worker allocates and 40 % of its CPU time at rest; this one is used in
// place. Pointers of the library are numbers, so that neither the garbage collector nor
// cgo's checks scan them.
type gpmQuery struct {
	version, count   uint32
	sample1, sample2 uintptr
	values           [len(nvml.GpmMetricsGetType{}.Metrics)]gpmValue
}

// gpmValue is nvmlGpmMetric_t, as nvml.GpmMetric is.
type gpmValue struct {
	id, ret uint32
	value   float64
	names   [3]uintptr
}

// It does not compile where the sizes differ.
var _ = [1]struct{}{}[unsafe.Sizeof(gpmValue{})-unsafe.Sizeof(nvml.GpmMetric{})]

// gpmSymbol is nvmlGpmMetricsGet of the library, which is loaded by then.
var gpmSymbol = sync.OnceValue(func() unsafe.Pointer { return C.accel_gpm_symbol() })

// get is nvmlGpmMetricsGet.
func (q *gpmQuery) get() nvml.Return {
	q.version = nvml.GPM_METRICS_GET_VERSION
	return nvml.Return(C.accel_gpm_metrics(gpmSymbol(), unsafe.Pointer(q)))
}

// addressOf is the library's pointer inside go-nvml's handle, a struct with one pointer.
func addressOf(s nvml.GpmSample) uintptr { return reflect.ValueOf(s).Field(0).Pointer() }
