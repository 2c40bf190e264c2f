package allocation

import "github.com/accel-exporter/accel-exporter/collector"

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
