package fpga

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
)

// unitQueues are the values of the label queue, the driver's names.
var unitQueues = []string{"pending", "running", "submitted", "completed"}

// longestUnit is the length of the longest line of kds_custat_raw; the driver
// has at most 128 units in each of its two lists.
const (
	longestUnit = 128
	mostUnits   = 128 * longestUnit
)

// computeUnits sets the compute units of the loaded images: their state in the
// scheduler, and the number of commands that wait for each.
func (a *alveo) computeUnits(r *reading) {
	if a.user.dir == "" || a.unitsLeft {
		return
	}
	var units []computeUnit
	for _, file := range []string{"kds_custat_raw", "kds_scustat_raw"} {
		if text, ok := r.got(r.fs.readLines(a.user.file(file), longestUnit, mostUnits)); ok {
			units = append(units, parseCUs(text)...)
		}
	}
	labels := unitLabels(units)
	waiting := a.queues(r, units)
	for i, u := range units {
		r.Set(collector.FPGAExecutions, float64(u.executions), labels[i])
		q, known := waiting[u.address]
		known = known && u.hasAddress
		state := cuState(u.status)
		if known && q.bad {
			state = "crashed"
		}
		r.states(collector.FPGAComputeUnitState, cuStates, state, labels[i])
		if !known {
			continue
		}
		for n, v := range []uint64{q.pending, q.running, q.submitted, q.completed} {
			r.Set(collector.FPGAQueueLength, float64(v), labels[i], unitQueues[n])
		}
	}
}

// queues reads the queues of the compute units, by their addresses: their
// directories have different numbers.
func (a *alveo) queues(r *reading, units []computeUnit) map[uint64]cuQueues {
	if len(units) == 0 {
		return nil
	}
	waiting := make(map[uint64]cuQueues, len(units))
	for _, dir := range a.user.of("cu") {
		address, ok := r.unsigned(collector.FPGAQueueLength, never, dir+"/base_paddr")
		if !ok {
			continue
		}
		text, ok := r.text(dir + "/cu_stat")
		if !ok {
			a.listed = time.Time{} // it has left
			continue
		}
		if q := parseQueues(text); q.ok {
			waiting[address] = q
		} else {
			r.Reject(collector.FPGAQueueLength, collector.RejectType)
		}
	}
	return waiting
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
	address    uint64
	hasAddress bool
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
		if len(units) == maxCUs {
			break
		}
		at[u.unitPlace] = len(units)
		units = append(units, u)
	}
	return units
}

func parseCU(line string) (u computeUnit, ok bool) {
	f := strings.Split(line, ",")
	var slot, index, name, address, status, executions string
	switch {
	case len(f) == 6:
		slot, index, name, address, status, executions = f[0], f[1], f[2], f[3], f[4], f[5]
	case len(f) == 5 && isNumber(f[1]):
		slot, index, name, status, executions = f[0], f[1], f[2], f[3], f[4]
		u.ps = true
	case len(f) == 5:
		slot, index, name, address, status, executions = "0", f[0], f[1], f[2], f[3], f[4]
	default:
		return u, false
	}
	var errs [5]error
	var n uint64
	u.slot, errs[0] = strconv.Atoi(slot)
	u.index, errs[1] = strconv.Atoi(index)
	n, errs[2] = strconv.ParseUint(status, 0, 32)
	u.status = uint32(n)
	u.executions, errs[3] = strconv.ParseUint(executions, 10, 64)
	if address != "" {
		u.address, errs[4] = strconv.ParseUint(address, 0, 64)
		u.hasAddress = true
	}
	for _, err := range errs {
		if err != nil {
			return u, false
		}
	}
	u.name = tidy(name)
	return u, u.name != "" && u.slot >= 0 && u.index >= 0
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

// cuQueues is the content of cu_stat of one unit.
type cuQueues struct {
	pending, running, submitted, completed uint64
	bad                                    bool
	ok                                     bool // all of them were present
}

// parseQueues parses cu_stat, lines of "name: value" with a NUL at the end.
func parseQueues(text string) (q cuQueues) {
	var found int
	for key, value := range keyValues(text) {
		into := map[string]*uint64{
			"Pending queue": &q.pending, "Running queue": &q.running,
			"Submitted queue": &q.submitted, "Completed queue": &q.completed,
		}[key]
		n, err := strconv.ParseUint(value, 0, 32)
		switch {
		case err != nil:
		case into != nil:
			*into = n
			found++
		case key == "Bad state":
			q.bad = n != 0
			found++
		}
	}
	q.ok = found >= 5
	return q
}
