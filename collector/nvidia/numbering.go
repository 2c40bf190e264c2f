//go:build linux && cgo

package nvidia

import (
	"strconv"
	"strings"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// numbering is what a driver means by the field ids 251 to 273, and whether it has
// those from 303 on. NVIDIA changed the former within R580 without a change of the
// API's version.
type numbering int

const (
	// numberingNone: these fields are not read.
	numberingNone numbering = iota
	// numbering575 is that of R575 and of R580 up to 580.65.
	numbering575
	// numbering580 is that of nvml.h from CUDA 13.0 update 1 on.
	numbering580
	// numbering615 has fields of banks of memory in addition.
	numbering615
)

// The fields that have moved, by their ids in numbering580: power smoothing, then
// the time spent throttled and the power balancing.
const (
	firstMoved     = nvml.FI_PWR_SMOOTHING_ENABLED
	firstThrottled = nvml.FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN
	lastMoved      = nvml.FI_DEV_POWER_SYNC_BALANCING_AF
	first615       = nvml.FI_DEV_ACTIVE_BANK_REMAPPINGS
)

// numberingOf returns the numbering of a driver by its version. R570 has none of
// the fields of throttling: it knows power smoothing by ids that are not
// published. Which release between 580.65 and 580.82 changed is not known.
func numberingOf(version string) numbering {
	branch, release, ok := releaseOf(version)
	switch {
	case !ok || branch < 575:
		return numberingNone
	case branch < 580 || branch == 580 && release <= 65:
		return numbering575
	case branch >= 615:
		return numbering615
	case branch > 580 || release >= 82:
		return numbering580
	}
	return numberingNone
}

// releaseOf returns the first two numbers of a driver's version, 535 and 54 of
// 535.54.03.
func releaseOf(version string) (branch, release uint64, ok bool) {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 2 {
		return 0, 0, false
	}
	branch, err := strconv.ParseUint(parts[0], 10, 16)
	release, err2 := strconv.ParseUint(parts[1], 10, 16)
	return branch, release, err == nil && err2 == nil
}

// otherLayouts are releases of drivers that write other structs behind a symbol
// than nvml.h and go-nvml have: the call would write beyond its buffer.
var otherLayouts = []struct {
	branch, first, last uint64
	calls               []*call
}{
	// 32 bytes for a process in place of 24, behind the symbols _v3.
	{535, 43, 86, []*call{callCompute, callGraphics, callMPS}},
}

// avoidOtherLayouts takes the calls from l that the driver's release would answer
// with other structs.
func (l *library) avoidOtherLayouts(version string) {
	branch, release, _ := releaseOf(version)
	for _, o := range otherLayouts {
		if branch != o.branch || release < o.first || release > o.last {
			continue
		}
		for _, c := range o.calls {
			l.has[c.index] = false
		}
	}
}

// id returns the driver's id of the field that numbering580 calls id.
func (n numbering) id(id uint32) (uint32, bool) {
	switch {
	case id >= first615:
		return id, n == numbering615
	case id < firstMoved || id > lastMoved || n >= numbering580:
		return id, true
	case n == numberingNone:
		return 0, false
	case id >= firstThrottled:
		return id - (firstThrottled - firstMoved), true
	}
	return id + (lastMoved - firstThrottled + 1), true
}
