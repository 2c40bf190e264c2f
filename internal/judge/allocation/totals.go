package allocation

import "github.com/accel-exporter/accel-exporter/collector"

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

// jobEngines are the values of the label engine.
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
