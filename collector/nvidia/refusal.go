//go:build linux && cgo

package nvidia

import (
	"slices"
	"strings"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/accel-exporter/accel-exporter/collector"
)

const (
	// minWait is how long a refused call is not repeated. It doubles with each
	// refusal, up to maxWait.
	minWait, maxWait = time.Minute, 30 * time.Minute
	// passing is the number of UNKNOWN in a row that may be a passing fault.
	passing = 2
)

// asked identifies a call, or a field of nvmlDeviceGetFieldValues.
type asked struct {
	call      *call
	id, scope uint32
}

// refusal is a call that the driver has refused and may permit again: the caller
// lacks a permission, or the driver names no reason.
type refusal struct {
	name  string
	code  nvml.Return
	times int // in a row
	// next is when the call is repeated; zero while its refusal may be a passing
	// fault.
	next time.Time
}

// refuse records an answer other than success. It reports whether it is a lasting
// refusal: then the call is repeated at refusal.next, and the round is complete
// without it.
func (a *asker) refuse(k asked, name string, ret nvml.Return) bool {
	if a.now.IsZero() || k.call.vital || ret != nvml.ERROR_NO_PERMISSION && ret != nvml.ERROR_UNKNOWN {
		delete(a.refusals, k)
		return false
	}
	r := a.refusals[k]
	if r == nil || r.code != ret {
		r = &refusal{name: name, code: ret}
		a.refusals[k] = r
	}
	r.times++
	n := r.times - 1
	if ret == nvml.ERROR_UNKNOWN {
		n -= passing
	}
	if n < 0 {
		return false
	}
	r.next = a.now.Add(min(minWait<<min(n, 10), maxWait))
	a.count(name, ret)
	return true
}

// denied reports whether the caller lacks a permission for c.
func (a *asker) denied(c *call) bool {
	r := a.refusals[asked{call: c}]
	return r != nil && r.code == nvml.ERROR_NO_PERMISSION
}

// waits reports whether k was refused and is not due again.
func (a *asker) waits(k asked) bool {
	r := a.refusals[k]
	return r != nil && a.now.Before(r.next)
}

// retry makes every refused call due: the device does not answer, so it may be
// another one when it does.
func (a *asker) retry() {
	for _, r := range a.refusals {
		r.next = time.Time{}
	}
}

// readRefusals sets which calls the driver refuses.
func (a *asker) readRefusals(d *collector.Device) {
	if len(a.refusals) == 0 {
		return
	}
	var list [][]string
	for _, r := range a.refusals {
		if labels := []string{r.name, code(r.code)}; !r.next.IsZero() && !slices.ContainsFunc(list, func(l []string) bool { return l[0] == r.name }) {
			list = append(list, labels)
		}
	}
	// A stable order avoids laying the page out again.
	slices.SortFunc(list, func(x, y []string) int { return strings.Compare(x[0], y[0]) })
	for _, labels := range list {
		d.Set(collector.CallRefused, 1, labels...)
	}
}
