package fpga

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/accel-exporter/accel-exporter/collector"
)

// longestUnit is the length of the longest line of kds_custat_raw; the driver
// has at most 128 units in each of its two lists.
const (
	longestUnit = 128
	mostUnits   = 128 * longestUnit
)

// computeUnits sets the compute units of the loaded images: their state in the
// scheduler, and the commands that each has completed.
func (a *alveo) computeUnits(r *reading) {
	if a.user.dir == "" || a.unitsLeft {
		return
	}
	var units []computeUnit
	for _, file := range []string{"kds_custat_raw", "kds_scustat_raw"} {
		if text, ok := r.got(r.fs.ReadLines(a.user.file(file), longestUnit, mostUnits)); ok {
			units = append(units, parseCUs(text)...)
		}
	}
	labels := unitLabels(units)
	for i, u := range units {
		r.Set(collector.FPGAExecutions, float64(u.executions), labels[i])
		r.states(collector.FPGAComputeUnitState, cuStates, cuState(u.status), labels[i])
	}
}

// unitLabels are the labels of the units: their names in the image, preceded by
// the slot in all slots but the first, and followed by a number where two have
// the same.
func unitLabels(units []computeUnit) []string {
	labels := make([]string, len(units))
	for i, u := range units {
		label := u.name
		if u.slot > 0 {
			label = "slot" + strconv.Itoa(u.slot) + "/" + label
		}
		for slices.Contains(labels[:i], label) {
			label += "#" + strconv.Itoa(u.index)
		}
		labels[i] = label
	}
	return labels
}

// computeUnit is one compute unit or, where ps is set, one kernel on the card's
// processors, as listed by the scheduler.
type computeUnit struct {
	unitPlace
	name       string // kernel:instance
	status     uint32 // the control register when last read, see cuState
	executions uint64 // completed since the image was loaded
}

// unitPlace is the scheduler's key of a compute unit.
type unitPlace struct {
	slot, index int
	ps          bool
}

// parseCUs parses kds_custat_raw and kds_scustat_raw, whose lines are
//
//	slot,index,kernel:unit,address,status,executions
//	slot,index,kernel:unit,status,executions         processor kernels
//	index,kernel:unit,address,status,executions      before there were slots
//
// A unit that is listed twice, because a counter gained a digit between two
// pages, counts once.
func parseCUs(text string) []computeUnit {
	at := map[unitPlace]int{}
	var units []computeUnit
	for line := range strings.Lines(text) {
		u, ok := parseCU(strings.Trim(line, "\x00 \t\r\n"))
		if !ok {
			continue
		}
		if i, twice := at[u.unitPlace]; twice {
			units[i] = u
			continue
		}
		at[u.unitPlace] = len(units)
		units = append(units, u)
	}
	return units
}

func parseCU(line string) (u computeUnit, ok bool) {
	f := strings.Split(line, ",")
	switch {
	case len(f) == 6:
	case len(f) == 5 && isNumber(f[1]):
		f, u.ps = slices.Insert(f, 3, "0"), true // no address
	case len(f) == 5:
		f = slices.Insert(f, 0, "0") // no slot
	default:
		return u, false
	}
	slot, err1 := strconv.ParseUint(f[0], 10, 31)
	index, err2 := strconv.ParseUint(f[1], 10, 31)
	_, err3 := strconv.ParseUint(f[3], 0, 64) // its address
	status, err4 := strconv.ParseUint(f[4], 0, 32)
	executions, err5 := strconv.ParseUint(f[5], 10, 64)
	u.slot, u.index, u.name = int(slot), int(index), tidy(f[2])
	u.status, u.executions = uint32(status), executions
	return u, errors.Join(err1, err2, err3, err4, err5) == nil && u.name != ""
}

func isNumber(s string) bool {
	_, err := strconv.ParseUint(s, 10, 32)
	return err == nil
}

// cuStates are the values of the label state. The first of several bits in a
// status word decides.
var cuStates = []string{"crashed", "reset", "running", "done", "idle", "ready"}

// cuState returns the state of a unit's control register: the ap_ctrl bits
// START 1, DONE 2, IDLE 4, READY 8, CONTINUE 0x10, RESET 0x20 and SW_RESET
// 0x100, or all ones where the driver gave up. It is empty for a register that
// was never read.
func cuState(status uint32) string {
	switch {
	case status == 0xffffffff:
		return "crashed"
	case status&0x120 != 0:
		return "reset"
	case status&0x01 != 0:
		return "running"
	case status&0x02 != 0:
		return "done"
	case status&0x04 != 0:
		return "idle"
	case status&0x08 != 0:
		return "ready"
	}
	return ""
}
