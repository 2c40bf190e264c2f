package fpga

import (
	"strconv"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
)

// labelledUnit is a compute unit with its name as a label value.
type labelledUnit struct {
	name  string // in the image
	label string
}

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
	a.contexts(r)
	a.nameUnits(units)
	waiting := a.queues(r, units)
	for _, u := range units {
		l := a.units[u.unitPlace]
		if l == nil {
			continue
		}
		r.Set(collector.FPGAExecutions, float64(u.executions), a.labels.of(l.label, "")[:1]...)
		q, known := waiting[u.address]
		known = known && u.hasAddress
		state := cuState(u.status)
		if known && q.bad {
			state = "crashed"
		}
		for _, s := range cuStates {
			r.SetBool(collector.FPGAComputeUnitState, s == state, a.labels.of(l.label, s)...)
		}
		if !known {
			continue
		}
		for i, v := range []uint64{q.pending, q.running, q.submitted, q.completed} {
			r.Set(collector.FPGAQueueLength, float64(v), a.labels.of(l.label, unitQueues[i])...)
		}
	}
}

// contexts sets the number of contexts of programs. The counts of executions
// beside it are of a scheduler that the driver no longer has, and stay 0.
func (a *alveo) contexts(r *reading) {
	text, ok := r.text(a.user.file("kdsstat"))
	if !ok {
		return
	}
	for key, value := range keyValues(text) {
		if key == "contexts" {
			if n, ok := a.natural(r, collector.FPGAContexts, value); ok {
				r.Set(collector.FPGAContexts, float64(n))
			}
			return
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
		text, ok := r.textEvery(never, dir+"/base_paddr")
		if !ok {
			continue
		}
		address, ok := a.natural(r, collector.FPGAQueueLength, text)
		if !ok {
			continue
		}
		text, ok = r.text(dir + "/cu_stat")
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

// nameUnits gives each unit its label: its name in the image, preceded by the
// slot in all slots but the first, and followed by a number where two have the
// same.
func (a *alveo) nameUnits(units []computeUnit) {
	same := len(units) == len(a.units)
	for _, u := range units {
		l := a.units[u.unitPlace]
		same = same && l != nil && l.name == u.name
	}
	if same {
		return
	}
	a.units = make(map[unitPlace]*labelledUnit, len(units))
	taken := map[string]bool{}
	for _, u := range units {
		label := u.name
		if u.slot > 0 {
			label = "slot" + strconv.Itoa(u.slot) + "/" + label
		}
		for taken[label] {
			label += "#" + strconv.Itoa(u.index)
		}
		taken[label] = true
		a.units[u.unitPlace] = &labelledUnit{u.name, label}
	}
}
