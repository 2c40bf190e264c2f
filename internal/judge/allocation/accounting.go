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
type ownership uint8

const (
	ofHolder ownership = iota
	ofOther
	ofUnknown
	numberOfOwnerships
)

// owningLabels are the values of the label whose.
var ownershipLabels = [numberOfOwnerships][]string{{"holder"}, {"other"}, {"unknown"}}

// ledger is what a driver's accounting has told of a device's processes.
type accounting struct {
	reported bool      // in the latest Snapshot
	begun    time.Time // when it was first told
	known    map[accountKey]*accounted
	ended    [numberOfOwnerships]float64
}

// accountKey tells processes apart: the kernel uses numbers again.
type accountKey struct {
	pid     int
	started int64
}

// accounted is a process. Whose it is is found out while it runs.
type accounted struct {
	pod       podmap.Pod
	ownership ownership // ofHolder for every pod's: who holds the device may change
	counted   bool      // it has ended, and that is known
	seen      time.Time
}

// accountProcesses takes what the accounting says of the processes of the device.
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
	if !account.Ended.IsZero() && account.Ended.Before(l.begun) {
		return
	}
	key := accountKey{account.PID, account.Started.UnixNano()}
	p := l.known[key]
	if p == nil {
		if len(l.known) >= maxAccounted {
			return
		}
		p = &accounted{ownership: ofUnknown}
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
		l.ended[ofOther]++ // of a pod that does not hold the device
	default:
		l.ended[p.ownership]++
	}
}

// ran finds the pod of a process. Of one that has ended it is what was known
// while it ran.
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

// holderOf returns the pod's hold on the device, be it one that has ended.
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

// publishEnded adds whose processes have ended.
func (l *accounting) publishEnded(r []collector.Reading) []collector.Reading {
	if l.known == nil {
		return r
	}
	for i, n := range l.ended {
		r = append(r, collector.Reading{Metric: collector.ProcessesEnded, Labels: ownershipLabels[i], Value: n})
	}
	return r
}
