//go:build linux && cgo

package nvidia

import (
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/accel-exporter/accel-exporter/collector"
)

// call is one NVML function, with fixed arguments where they matter. Its symbol
// is looked up, its errors are counted and its NOT_SUPPORTED is remembered
// separately.
type call struct {
	// name is the C symbol and the value of the label call.
	name string
	// versions are further symbols that go-nvml calls instead of name where the
	// library has them. One of them is enough.
	versions []string
	// quiet is a return code that is neither success nor counted as an error.
	quiet nvml.Return
	// alone: no two such calls are made at once.
	alone bool
	// vital: without an answer the source or the device is unknown, so the call
	// is repeated in every round.
	vital bool
	index int
}

// calls is every call this package makes. Package-level variables fill it by
// define, so it is complete before a library is opened.
var calls []*call

func define(c call) *call {
	c.index = len(calls)
	calls = append(calls, &c)
	return &c
}

// function defines the call of a C function.
func function(name string, versions ...string) *call {
	return define(call{name: name, versions: versions})
}

// variants defines n calls of one function that differ in their arguments.
func variants(n int, name string) []*call {
	list := make([]*call, n)
	for i := range list {
		list[i] = function(name)
	}
	return list
}

// asker records which calls one device supports. It belongs to the goroutine
// that owns the device.
type asker struct {
	// has marks the calls that the library has a symbol for; shared and
	// constant.
	has []bool
	// refused marks the calls that are not made: the device will never support
	// them, or they are in refusals.
	refused  []bool
	refusals map[asked]*refusal
	// round is shared by a GPU and its MIG devices.
	*round
}

// round is the outcome of one round of calls.
type round struct {
	// now is when the round began; zero where no call waits after a refusal.
	now time.Time
	// fatal is the return code that ended the round, or SUCCESS.
	fatal nvml.Return
	// stale is the first return code that hints at a replaced driver, or
	// SUCCESS.
	stale nvml.Return
	// failed is the first call that failed unexpectedly, and its return code.
	failed    string
	failedRet nvml.Return
	errors    []collector.CallError
}

func newAsker(lib *library, r *round) asker {
	return asker{has: lib.has, refused: make([]bool, len(calls)), refusals: map[asked]*refusal{}, round: r}
}

// forget clears the refused calls: the device has been reset or replaced.
func (a *asker) forget() {
	clear(a.refused)
	clear(a.refusals)
}

// never reports whether the device will never support c.
func (a *asker) never(c *call) bool {
	return a.refused[c.index] && a.refusals[asked{call: c}] == nil
}

// may reports whether c can be called.
func (a *asker) may(c *call) bool {
	if a.fatal != nvml.SUCCESS || a.never(c) || a.waits(asked{call: c}) {
		return false
	}
	a.refused[c.index] = false
	if !a.has[c.index] {
		a.refused[c.index] = true
		a.count(c.name, nvml.ERROR_FUNCTION_NOT_FOUND)
		return false
	}
	return true
}

// took records the return code of c and reports whether it is success.
func (a *asker) took(c *call, ret nvml.Return) bool {
	if ret == nvml.SUCCESS || ret == c.quiet {
		if len(a.refusals) > 0 {
			delete(a.refusals, asked{call: c})
		}
		return ret == nvml.SUCCESS
	}
	if a.refuse(asked{call: c}, c.name, ret) {
		a.refused[c.index] = true
		return false
	}
	if permanent(ret) {
		a.refused[c.index] = true
	}
	a.fail(c.name, ret)
	return false
}

// fail counts a return code other than success, keeps it for the round's error,
// and records its consequence for the device.
func (r *round) fail(name string, ret nvml.Return) {
	if fatal(ret) && r.fatal == nvml.SUCCESS {
		r.fatal = ret
		r.failed = ""
	}
	if stale(ret) && r.stale == nvml.SUCCESS {
		r.stale = ret
	}
	r.missed(name, ret)
}

// missed is fail for one of many values that a call returned. It has no
// consequence for the device.
func (r *round) missed(name string, ret nvml.Return) {
	r.count(name, ret)
	if r.failed == "" && !permanent(ret) {
		r.failed, r.failedRet = name, ret
	}
}

func (r *round) count(name string, ret nvml.Return) {
	c := code(ret)
	for i := range r.errors {
		if e := &r.errors[i]; e.Call == name && e.Code == c {
			e.Count++
			return
		}
	}
	r.errors = append(r.errors, collector.CallError{Call: name, Code: c, Count: 1})
}

// take ends the round. It returns the error counts and why the round is
// incomplete.
func (r *round) take() ([]collector.CallError, error) {
	errs := r.errors
	var err error
	if r.failed != "" {
		err = fmt.Errorf("%s: %s", r.failed, code(r.failedRet))
	}
	*r = round{}
	return errs, err
}

// do calls f, which calls c and nothing else, unless c is missing or refused. It
// reports success. NVML functions are called here only.
func do(a *asker, c *call, f func() nvml.Return) bool {
	if !a.may(c) {
		return false
	}
	if c.alone {
		defer enterAlone().leave()
	}
	return a.took(c, sized(f))
}

// sized calls f. Where a list takes two calls, go-nvml cuts its buffer to the
// count of the second, and panics where that is larger than the buffer.
func sized(f func() nvml.Return) (ret nvml.Return) {
	defer func() {
		if p := recover(); p != nil {
			if err, ok := p.(runtime.Error); !ok || !strings.Contains(err.Error(), "slice bounds") {
				panic(p)
			}
			ret = nvml.ERROR_INSUFFICIENT_SIZE
		}
	}()
	return f()
}

// ask is do for a function with one result.
func ask[T any](a *asker, c *call, f func() (T, nvml.Return)) (v T, ok bool) {
	ok = do(a, c, func() (ret nvml.Return) {
		v, ret = f()
		return ret
	})
	return v, ok
}

// ask2 is do for a function with two results.
func ask2[T, U any](a *asker, c *call, f func() (T, U, nvml.Return)) (v T, u U, ok bool) {
	ok = do(a, c, func() (ret nvml.Return) {
		v, u, ret = f()
		return ret
	})
	return v, u, ok
}
