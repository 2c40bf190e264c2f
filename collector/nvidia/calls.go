//go:build linux && cgo

package nvidia

import (
	"fmt"
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
	// refused marks the calls that the device will never support.
	refused []bool
	// times, which may be nil, measures the calls.
	times *callTimes
	// round is shared by a GPU and its MIG devices.
	*round
}

// round is the outcome of one round of calls.
type round struct {
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
	return asker{has: lib.has, refused: make([]bool, len(calls)), times: lib.times, round: r}
}

// forget clears the refused calls: the device has been reset or replaced.
func (a *asker) forget() { clear(a.refused) }

// may reports whether c can be called.
func (a *asker) may(c *call) bool {
	if a.fatal != nvml.SUCCESS || a.refused[c.index] {
		return false
	}
	if !a.has[c.index] {
		a.refused[c.index] = true
		a.count(c.name, nvml.ERROR_FUNCTION_NOT_FOUND)
		return false
	}
	return true
}

// took records the return code of c and reports whether it is success.
func (a *asker) took(c *call, ret nvml.Return) bool {
	if ret == nvml.SUCCESS {
		return true
	}
	if ret == c.quiet {
		return false
	}
	if permanent(ret) {
		a.refused[c.index] = true
	}
	a.fail(c.name, ret)
	return false
}

// fail counts a return code other than success, keeps it for the round's error,
// and records what it means for the device.
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
	if a.times == nil {
		return a.took(c, f())
	}
	begun := time.Now()
	ret := f()
	a.times.observe(c.name, time.Since(begun))
	return a.took(c, ret)
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
