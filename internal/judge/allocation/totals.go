package allocation

import "github.com/accel-exporter/accel-exporter/collector"

// jobs are what was done for a hold, and is still told when the pod has gone.
type processTotals struct {
	// metered says that the energy of the device is known.
	metered bool
	joules  float64
	// shown says that processes have been accounted for.
	known   bool
	ended   float64
	seconds float64
	// busy is by engine, and told how many of the processes that have ended
	// tell of it.
	busy, reported [len(accountingEngines)]float64
	peak           float64
	hasPeak        bool
	labels         [len(accountingEngines)][]string // of the families by engine
}

// jobEngines are the values of the label engine.
var accountingEngines = [...]string{"compute", "memory"}

// reach takes what a process has had of the device's memory.
func (x *processTotals) reach(peak *float64) {
	if peak != nil {
		x.peak, x.hasPeak = max(x.peak, *peak), true
	}
}

// end takes a process that has ended.
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

// inherit takes what a hold did whose series are the same, and leaves it
// nothing.
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

// publishJobs adds what was done for the hold. A time at work is told
// where every process that has ended told it.
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
