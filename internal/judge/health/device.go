package health

import (
	"slices"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
)

// device is the state of one device.
type device struct {
	round uint64 // of the last Snapshot that had it

	foreign bool      // it is of another vendor than NVIDIA
	sourced bool      // a source of its faults has answered
	loaded  time.Time // when its driver was last loaded and found it
	ended   time.Time // when the faults of earlier events ended, or the driver recommended no action
	faults  []*fault
	awaited []awaited
	conds   []conditionState // by condition
	blind   time.Time        // since when it does not answer
	// driver is the last recovery action of the driver, driverSince its start
	// and driverAt the time of the last event that reported it.
	driver                Action
	driverSince, driverAt time.Time

	// To detect a reset of the device.
	sampled, goneAt time.Time
	energy, ecc     float64
	eccs            int
	// pending and pendings are of the latest look: a sum over fewer series, after a
	// failed read, is no reset.
	pending, pendings int

	findings []finding
	verdict  *collector.Verdict
	reasons  [][]string // labels of accel_device_health_reason
	// failing: it has failed and has not been healthy since. failures is how often
	// it has.
	failing  bool
	failures float64
}

// conditionState is the state of one condition on one device.
type conditionState struct {
	since time.Time // true since then
	// value and limit were read at since, so that a text with them does not change
	// with every reading.
	value, limit float64
	other        bool      // it was false for some reading
	until        time.Time // of the test grows
	sum          float64
	n            int // readings in sum
}

func newDevice(c *Catalogue) *device {
	return &device{conds: make([]conditionState, len(c.conditions)), energy: -1}
}

// setCatalogue judges the faults by c. Its conditions are the conditions of every catalogue, in
// the same order.
func (st *device) setCatalogue(c *Catalogue) {
	faults := st.faults
	st.faults = nil
	for _, f := range faults {
		entry, known := c.lookup(&f.event)
		if entry.Severity == None {
			continue
		}
		n := *f
		n.entry, n.reason = entry, reasonFor(entry, known, &f.event)
		n.text = faultText(&n)
		if !st.has(n.reason) {
			st.faults = append(st.faults, &n)
		}
	}
}

// setDriver records the recovery action that an event reported.
func (st *device) setDriver(a Action, at time.Time) {
	if at.Before(st.driverAt) {
		return
	}
	if a != st.driver {
		st.driverSince = at
	}
	st.driver, st.driverAt = a, at
}

// eventLag is the time between an event and a reading after which the reading is
// newer information of the driver.
const eventLag = time.Second

// notice detects a reset of the device and removes the faults that it ends.
func (st *device) notice(l *look, now time.Time) {
	if l.gone {
		st.goneAt = now
	}
	if !l.answers {
		return // the counters are old
	}
	reset := !st.goneAt.IsZero() && l.sampled.After(st.goneAt) ||
		l.energy >= 0 && l.energy < st.energy ||
		l.eccs > 0 && l.eccs == st.eccs && l.ecc < st.ecc ||
		l.pendings > 0 && l.pendings == st.pendings && l.pending < st.pending
	newer := l.driver != unsetAction && l.sampled.After(st.driverAt.Add(eventLag))
	if reset || newer && st.driver > NoAction && l.driver == NoAction {
		st.cure(st.before(l), false)
	}
	if newer && l.driver != st.driver {
		st.driver, st.driverSince = l.driver, now
	}
	if !l.sampled.IsZero() {
		st.sampled = l.sampled
	}
	if !st.goneAt.IsZero() && l.sampled.After(st.goneAt) {
		st.goneAt = time.Time{}
	}
	st.energy, st.ecc, st.eccs = l.energy, l.ecc, l.eccs
	st.pending, st.pendings = l.pending, l.pendings
}

// minResetTime is shorter than the reset of any device.
const minResetTime = 10 * time.Second

// before returns a time before the reset that l shows.
func (st *device) before(l *look) time.Time {
	return later(later(st.sampled, st.goneAt), l.sampled.Add(-minResetTime))
}

// driverFinding returns the recovery action of the driver as a finding.
func (st *device) driverFinding() (finding, bool) {
	r, ok := recoveryActions[st.driver]
	rank := uint8(rankDriver)
	if st.driver == Inspect {
		rank = rankReading // an unknown action does not take precedence over known ones
	}
	return newFinding(r.code, r.text, r.severity, st.driver, rank, st.driverSince), ok
}

// conditions appends the conditions that are true.
func (st *device) conditions(c *Catalogue, l *look, now time.Time, out []finding) []finding {
	for i, t := range c.conditions {
		h, hit := &st.conds[i], &l.hits[i]
		failing := hit.n > 0
		if t.grows {
			failing = h.grown(hit, t, now)
		}
		h.other = h.other || hit.total > hit.n
		switch {
		case t.Unless == "all" && !h.other, t.Unless == "any" && hit.total > hit.n, t.Peers && !l.peers:
			failing = false
		}
		if !failing {
			h.since = time.Time{}
			continue
		}
		if h.since.IsZero() {
			h.since, h.value, h.limit = now, hit.value, hit.limit
		}
		if t.Severity != None && now.Sub(h.since) >= t.For {
			f := newFinding(t.Reason, t.message(hit), t.Severity, t.Action, rankReading, h.since)
			f.Brief, f.Kind = t.brief(hit, h), t.Kind
			out = append(out, f)
		}
	}
	return out
}

// grown reports whether the sum has grown recently. The first sum, and a sum over
// a different number of readings, is only a new base.
func (h *conditionState) grown(hit *hit, t *test, now time.Time) bool {
	if hit.total > 0 {
		if h.n == hit.total && hit.sum > h.sum {
			h.until = now.Add(t.Lasts)
		}
		h.sum, h.n = hit.sum, hit.total
	}
	return now.Before(h.until)
}

// inherit adds the findings of the parent.
func inherit(own, parents []finding) []finding {
	for _, p := range parents {
		if p.Code == NoAnswer || slices.ContainsFunc(own, func(f finding) bool { return f.Code == p.Code }) {
			continue
		}
		own = append(own, p)
	}
	return own
}
