package allocation

import (
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/podmap"
	"github.com/accel-exporter/accel-exporter/podmap/proc"
)

const (
	// maxAccounted limits the processes of a device that are remembered.
	// Further ones are not counted.
	maxAccounted = 1024
	// forgetAccount is how long a process is remembered after its source last
	// reported it. A process that is reported again within it counts once.
	forgetAccount = 15 * time.Minute
)

// ownership is the relation of a process to the allocations of its device.
type ownership uint8

const (
	ofHolder ownership = iota
	ofOther
	ofUnknown
	numberOfOwnerships
)

// ownershipLabels are the values of the label whose.
var ownershipLabels = [numberOfOwnerships][]string{{"holder"}, {"other"}, {"unknown"}}

// accounting is a driver's record of a device's processes.
type accounting struct {
	reported bool      // in the latest Snapshot
	begun    time.Time // when it was first reported
	known    map[accountKey]*accounted
	ended    [numberOfOwnerships]float64
}

// accountKey identifies a process: the kernel reuses PIDs.
type accountKey struct {
	pid     int
	started int64
}

// accounted is a process. Its owner is found while it runs.
type accounted struct {
	pod       podmap.Pod
	ownership ownership // ofHolder for every pod: allocations may change
	counted   bool      // it has ended, and that is known
	seen      time.Time
}

// accountProcesses adds the driver's record of the processes of the device.
func (j *Judge) accountProcesses(st *device, d *collector.Device) {
	l := &st.accounting
	if l.reported = d.Accounts != nil; !l.reported {
		return
	}
	if l.known == nil {
		l.known, l.begun = map[accountKey]*accounted{}, j.now
	}
	for _, a := range st.allocations {
		a.totals.known = true
	}
	for i := range d.Accounts {
		j.accountProcess(st, &d.Accounts[i])
	}
	for key, p := range l.known {
		if j.now.Sub(p.seen) > forgetAccount {
			delete(l.known, key)
		}
	}
}

func (j *Judge) accountProcess(st *device, account *collector.Account) {
	l := &st.accounting
	key := accountKey{account.PID, account.Started.UnixNano()}
	p := l.known[key]
	if p == nil {
		if len(l.known) >= maxAccounted {
			return
		}
		// Those that ended before the first report do not count.
		old := !account.Ended.IsZero() && account.Ended.Before(collector.OnClock(l.begun, j.now))
		p = &accounted{ownership: ofUnknown, counted: old}
		l.known[key] = p
	}
	p.seen = j.now
	if p.counted {
		return
	}
	if p.ownership == ofUnknown {
		p.pod, p.ownership = j.owners.ran(account, j.now)
	}
	var a *allocation
	if p.ownership == ofHolder {
		a = st.allocationOrEnded(p.pod)
	}
	if a != nil {
		a.totals.reach(account.MemoryPeak)
	}
	if account.Ended.IsZero() {
		return
	}
	p.counted = true
	switch {
	case a != nil:
		l.ended[ofHolder]++
		a.totals.end(account)
	case p.ownership == ofHolder:
		l.ended[ofOther]++ // of a pod without an allocation of the device
	default:
		l.ended[p.ownership]++
	}
}

// ran finds the pod of a process. For a process that has ended it is the pod
// that was known while it ran.
func (o *owners) ran(account *collector.Account, now time.Time) (podmap.Pod, ownership) {
	if o.proc == nil {
		return podmap.Pod{}, ofUnknown
	}
	var p *process
	if account.Ended.IsZero() {
		p = o.of(account.PID, now)
	} else if p = o.known[account.PID]; p == nil || p.since.After(account.Ended) {
		return podmap.Pod{}, ofUnknown
	}
	switch {
	case p.owner.Kind == proc.Host, p.owner.Kind == proc.Pod && p.service():
		return podmap.Pod{}, ofOther
	case p.owner.Kind == proc.Pod && p.named:
		return p.pod, ofHolder
	}
	return podmap.Pod{}, ofUnknown
}

// allocationOrEnded returns the pod's allocation of the device, current or
// ended.
func (st *device) allocationOrEnded(pod podmap.Pod) *allocation {
	if a := st.allocationOf(pod); a != nil {
		return a
	}
	for i := len(st.ended) - 1; i >= 0; i-- {
		if a := st.ended[i]; a.pod == pod {
			return a
		}
	}
	return nil
}

// publishEnded adds the number of ended processes by owner.
func (l *accounting) publishEnded(r []collector.Reading) []collector.Reading {
	if l.known == nil {
		return r
	}
	for i, n := range l.ended {
		r = append(r, collector.Reading{Metric: collector.ProcessesEnded, Labels: ownershipLabels[i], Value: n})
	}
	return r
}

// processTotals add up what was done for an allocation. They are published
// until an hour after its end.
type processTotals struct {
	// metered: the energy of the device is known.
	metered bool
	joules  float64
	// known: processes have been accounted for.
	known   bool
	ended   float64
	seconds float64
	// busy is by engine, and reported the number of ended processes with a
	// value for it.
	busy, reported [len(accountingEngines)]float64
	peak           float64
	hasPeak        bool
	labels         [len(accountingEngines)][]string // of the families by engine
}

// accountingEngines are the values of the label engine.
var accountingEngines = [...]string{"compute", "memory"}

// reach takes a process's peak use of the device's memory.
func (x *processTotals) reach(peak *float64) {
	if peak != nil {
		x.peak, x.hasPeak = max(x.peak, *peak), true
	}
}

// end adds a process that has ended.
func (x *processTotals) end(account *collector.Account) {
	ran := account.Ended.Sub(account.Started).Seconds()
	x.known = true
	x.ended++
	x.seconds += ran
	for i, share := range []*float64{account.Compute, account.Memory} {
		if share != nil {
			x.reported[i]++
			x.busy[i] += ran * *share
		}
	}
}

// inherit moves the totals of an allocation with the same series to this one.
func (x *processTotals) inherit(o *processTotals) {
	x.metered = x.metered || o.metered
	x.joules += o.joules
	x.known = x.known || o.known
	x.ended += o.ended
	x.seconds += o.seconds
	for i := range x.busy {
		x.busy[i] += o.busy[i]
		x.reported[i] += o.reported[i]
	}
	if o.hasPeak {
		x.reach(&o.peak)
	}
	*o = processTotals{labels: o.labels}
}

// publishTotals adds what was done for the allocation. A busy time is
// published if every process that has ended reported it.
func (a *allocation) publishTotals(r []collector.Reading) []collector.Reading {
	r = a.publishEnergy(r)
	x := &a.totals
	if !x.known {
		return r
	}
	r = append(r, collector.Reading{Metric: collector.AllocationProcessesEnded, Labels: a.labels, Value: x.ended},
		collector.Reading{Metric: collector.AllocationProcessSeconds, Labels: a.labels, Value: x.seconds})
	for i, engine := range accountingEngines {
		if x.reported[i] == x.ended {
			if x.labels[i] == nil {
				x.labels[i] = append(a.labels[:len(a.labels):len(a.labels)], engine)
			}
			r = append(r, collector.Reading{Metric: collector.AllocationProcessBusy, Labels: x.labels[i], Value: x.busy[i]})
		}
	}
	if x.hasPeak && a.until.IsZero() && a.device.accounting.reported {
		r = append(r, collector.Reading{Metric: collector.AllocationProcessMemoryPeak, Labels: a.labels, Value: x.peak})
	}
	return r
}
