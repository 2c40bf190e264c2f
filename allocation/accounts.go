package allocation

import (
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/podmap"
	"github.com/accel-exporter/accel-exporter/procmap"
)

const (
	// maxAccounted bounds the processes of a device that are remembered; those
	// beyond are not counted.
	maxAccounted = 1024
	// forgetAccount is how long a process is remembered that is not told of any
	// more. Its source may tell of it again meanwhile, and it counts once.
	forgetAccount = 15 * time.Minute
)

// owning is whose a process was.
type owning uint8

const (
	ofHolder owning = iota
	ofOther
	ofUnknown
	numberOfOwnings
)

// owningLabels are the values of the label whose.
var owningLabels = [numberOfOwnings][]string{{"holder"}, {"other"}, {"unknown"}}

// ledger is what a driver's accounting has told of a device's processes.
type ledger struct {
	told  bool      // in the latest Snapshot
	begun time.Time // when it was first told
	known map[accountKey]*accounted
	ended [numberOfOwnings]float64
}

// accountKey tells processes apart: the kernel uses numbers again.
type accountKey struct {
	pid     int
	started int64
}

// accounted is a process. Whose it is is found out while it runs.
type accounted struct {
	pod     podmap.Pod
	owning  owning // ofHolder for every pod's: who holds the device may change
	counted bool   // it has ended, and that is known
	seen    time.Time
}

// jobs are what was done for a hold, and is still told when the pod has gone.
type jobs struct {
	// metered says that the energy of the device is known.
	metered bool
	joules  float64
	// shown says that processes have been accounted for.
	shown   bool
	ended   float64
	seconds float64
	// busy is by engine, and told how many of the processes that have ended
	// tell of it.
	busy, told [len(jobEngines)]float64
	peak       float64
	hasPeak    bool
	labels     [len(jobEngines)][]string // of the families by engine
}

// jobEngines are the values of the label engine.
var jobEngines = [...]string{"compute", "memory"}

// accountProcesses takes what the accounting says of the processes of the device.
func (j *Judge) accountProcesses(st *device, d *collector.Device) {
	l := &st.ledger
	if l.told = d.Accounts != nil; !l.told {
		return
	}
	if l.known == nil {
		l.known, l.begun = map[accountKey]*accounted{}, j.now
	}
	for _, h := range st.holds {
		h.jobs.shown = true
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

func (j *Judge) accountProcess(st *device, a *collector.Account) {
	l := &st.ledger
	if !a.Ended.IsZero() && a.Ended.Before(l.begun) {
		return
	}
	key := accountKey{a.PID, a.Started.UnixNano()}
	p := l.known[key]
	if p == nil {
		if len(l.known) >= maxAccounted {
			return
		}
		p = &accounted{owning: ofUnknown}
		l.known[key] = p
	}
	p.seen = j.now
	if p.counted {
		return
	}
	if p.owning == ofUnknown {
		p.pod, p.owning = j.owners.ran(a, j.now)
	}
	var h *hold
	if p.owning == ofHolder {
		h = st.holderOf(p.pod)
	}
	if h != nil {
		h.jobs.reach(a.MemoryPeak)
	}
	if a.Ended.IsZero() {
		return
	}
	p.counted = true
	switch {
	case h != nil:
		l.ended[ofHolder]++
		h.jobs.end(a)
	case p.owning == ofHolder:
		l.ended[ofOther]++ // of a pod that does not hold the device
	default:
		l.ended[p.owning]++
	}
}

// ran finds the pod of a process. Of one that has ended it is what was known
// while it ran.
func (o *owners) ran(a *collector.Account, now time.Time) (podmap.Pod, owning) {
	if o.proc == nil {
		return podmap.Pod{}, ofUnknown
	}
	var p *process
	if a.Ended.IsZero() {
		p = o.of(a.PID, now)
	} else if p = o.known[a.PID]; p == nil || p.since.After(a.Ended) {
		return podmap.Pod{}, ofUnknown
	}
	switch {
	case p.owner.Kind == procmap.Host, p.owner.Kind == procmap.Pod && p.service():
		return podmap.Pod{}, ofOther
	case p.owner.Kind == procmap.Pod && p.named:
		return p.pod, ofHolder
	}
	return podmap.Pod{}, ofUnknown
}

// holderOf returns the pod's hold on the device, be it one that has ended.
func (st *device) holderOf(pod podmap.Pod) *hold {
	if h := st.holdOf(pod); h != nil {
		return h
	}
	for i := len(st.ended) - 1; i >= 0; i-- {
		if h := st.ended[i]; h.pod == pod {
			return h
		}
	}
	return nil
}

// reach takes what a process has had of the device's memory.
func (x *jobs) reach(peak *float64) {
	if peak != nil {
		x.peak, x.hasPeak = max(x.peak, *peak), true
	}
}

// end takes a process that has ended.
func (x *jobs) end(a *collector.Account) {
	ran := a.Ended.Sub(a.Started).Seconds()
	x.shown = true
	x.ended++
	x.seconds += ran
	for i, share := range []*float64{a.Compute, a.Memory} {
		if share != nil {
			x.told[i]++
			x.busy[i] += ran * *share
		}
	}
}

// inherit takes what a hold did whose series are the same, and leaves it
// nothing.
func (x *jobs) inherit(o *jobs) {
	x.metered = x.metered || o.metered
	x.joules += o.joules
	x.shown = x.shown || o.shown
	x.ended += o.ended
	x.seconds += o.seconds
	for i := range x.busy {
		x.busy[i] += o.busy[i]
		x.told[i] += o.told[i]
	}
	if o.hasPeak {
		x.reach(&o.peak)
	}
	*o = jobs{labels: o.labels}
}

// publishJobs adds what was done for the hold. A time at work is told
// where every process that has ended told it.
func (h *hold) publishJobs(r []collector.Reading) []collector.Reading {
	r = h.publishEnergy(r)
	x := &h.jobs
	if !x.shown {
		return r
	}
	r = append(r, collector.Reading{Metric: collector.AllocationProcessesEnded, Labels: h.labels, Value: x.ended},
		collector.Reading{Metric: collector.AllocationProcessSeconds, Labels: h.labels, Value: x.seconds})
	for i, engine := range jobEngines {
		if x.told[i] == x.ended {
			if x.labels[i] == nil {
				x.labels[i] = append(h.labels[:len(h.labels):len(h.labels)], engine)
			}
			r = append(r, collector.Reading{Metric: collector.AllocationProcessBusy, Labels: x.labels[i], Value: x.busy[i]})
		}
	}
	if x.hasPeak && h.until.IsZero() && h.device.ledger.told {
		r = append(r, collector.Reading{Metric: collector.AllocationProcessMemoryPeak, Labels: h.labels, Value: x.peak})
	}
	return r
}

// publishEnded adds whose processes have ended.
func (l *ledger) publishEnded(r []collector.Reading) []collector.Reading {
	if l.known == nil {
		return r
	}
	for i, n := range l.ended {
		r = append(r, collector.Reading{Metric: collector.ProcessesEnded, Labels: owningLabels[i], Value: n})
	}
	return r
}
