package allocation

import (
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/podmap"
	"github.com/accel-exporter/accel-exporter/podmap/proc"
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
	case p.owner.Kind == proc.Host, p.owner.Kind == proc.Pod && p.service():
		return podmap.Pod{}, ofOther
	case p.owner.Kind == proc.Pod && p.named:
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
