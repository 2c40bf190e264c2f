//go:build linux && cgo

package dcgm

/*
#cgo LDFLAGS: -ldl
#include <stdlib.h>
#include "shim.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unsafe"

	"github.com/NVIDIA/go-dcgm/pkg/dcgm"

	"github.com/accel-exporter/accel-exporter/collector"
)

// soname is the name that go-dcgm loads: it accepts no path.
const soname = "libdcgm.so.4"

// required are the functions without which nothing can be read. go-dcgm and the
// shim call them.
var required = []string{
	"errorString", "dcgmInit", "dcgmShutdown", "dcgmVersionInfo",
	"dcgmStartEmbedded", "dcgmStopEmbedded", "dcgmConnect_v2", "dcgmDisconnect",
	"dcgmGetEntityGroupEntities", "dcgmGroupCreate", "dcgmGroupDestroy", "dcgmGroupAddEntity",
	"dcgmFieldGroupCreate", "dcgmFieldGroupDestroy", "dcgmWatchFields", "dcgmUnwatchFields",
	"dcgmUpdateAllFields", "dcgmEntitiesGetLatestValues",
}

// library is the loaded libdcgm.
type library struct {
	// texts are the library's texts of the codes. go-dcgm reports an error by
	// its text.
	texts map[string]code
	// version is the library's own: 4.5.1.
	version string
}

// loadLibrary loads libdcgm and checks its functions and that it is of DCGM 4.
// It is never unloaded: a new version on disk requires a new process.
func loadLibrary() (*library, error) {
	name := C.CString(soname)
	defer C.free(unsafe.Pointer(name))
	if why := C.ax_open(name); why != nil {
		return nil, fmt.Errorf("%w: open %s: %s; it is looked for in LD_LIBRARY_PATH and in the loader's cache", collector.ErrEngine, soname, C.GoString(why))
	}
	if missing := slices.DeleteFunc(slices.Clone(required), has); len(missing) > 0 {
		return nil, fmt.Errorf("%w: %s has no %s: DCGM 4.0 or newer is accepted", collector.ErrMismatch, soname, strings.Join(missing, ", "))
	}
	l := &library{texts: map[string]code{}}
	for c := lowestCode; c < ok; c++ {
		if _, known := codes[c]; !known {
			continue
		}
		if text := C.ax_text(C.int(c)); text != nil {
			l.texts[C.GoString(text)] = c
		}
	}
	info, err := dcgm.GetVersionInfo()
	if c := l.code(err); c == versionMismatch {
		return nil, fmt.Errorf("%w: dcgmVersionInfo: %s: %s is none of DCGM 4", collector.ErrMismatch, c, soname)
	} else if c != ok {
		return nil, fmt.Errorf("%w: dcgmVersionInfo: %s", collector.ErrEngine, c)
	}
	l.version = parseVersion(info.RawBuildInfoString)
	if !strings.HasPrefix(l.version, "4.") {
		return nil, fmt.Errorf("%w: %s is DCGM %q; 4.x is accepted", collector.ErrMismatch, soname, l.version)
	}
	return l, nil
}

// has reports whether the library has a function.
func has(symbol string) bool {
	s := C.CString(symbol)
	defer C.free(unsafe.Pointer(s))
	return C.ax_has(s) != 0
}

// code returns the code of an error of go-dcgm, which mostly has a text only.
func (l *library) code(err error) code {
	if err == nil {
		return ok
	}
	if e, carried := errors.AsType[*dcgm.Error](err); carried {
		return code(e.Code)
	}
	best, length := unheardOf, 0
	for text, c := range l.texts {
		if len(text) > length && strings.HasSuffix(err.Error(), text) {
			best, length = c, len(text)
		}
	}
	return best
}

// handle is go-dcgm's unexported connection. The reader needs it: watches
// belong to a connection, and a second one would be a second client of the host
// engine. go-dcgm is pinned to one version, and the handle is checked after
// connecting.
//
//go:linkname handle github.com/NVIDIA/go-dcgm/pkg/dcgm.handle
var handle uintptr

// reader reads values through go-dcgm's connection.
type reader struct {
	values *C.ax_value
}

// batch is the most values of one read; the buffer takes 2 MiB.
const batch = 512

// close frees the buffer.
func (c *reader) close() {
	C.free(unsafe.Pointer(c.values))
	c.values = nil
}

// latest reads the latest values of at most batch fields of entities and passes
// each to take, which must not keep it.
func (c *reader) latest(entities []entity, fields []uint16, take func(*record)) code {
	n := len(entities) * len(fields)
	if n == 0 {
		return ok
	}
	if n > batch {
		return badParam
	}
	if c.values == nil {
		c.values = (*C.ax_value)(C.calloc(batch, C.sizeof_ax_value))
	}
	ret := C.ax_latest(C.uintptr_t(handle), (*C.ax_entity)(unsafe.Pointer(&entities[0])), C.uint32_t(len(entities)),
		(*C.uint16_t)(unsafe.Pointer(&fields[0])), C.uint32_t(len(fields)), c.values)
	if ret != 0 {
		return code(ret)
	}
	values := unsafe.Slice((*record)(unsafe.Pointer(c.values)), n)
	for i := range values {
		take(&values[i])
	}
	return ok
}
