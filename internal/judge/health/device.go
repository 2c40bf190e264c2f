package health

import (
	"slices"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
)

// device is what is remembered of one device.
type device struct {
	round uint64    // of the last Snapshot that had it; 0 for a stranger
	met   time.Time // when an event first told of a stranger

	faults  []*fault
	awaited []awaited
	holds   []hold    // by condition
	blind   time.Time // since when it does not answer
	// driver is what the driver last asked for, said when it began to and
	// told when an event last said so.
	driver     Action
	said, told time.Time

	// To notice that the device has been reset.
	sampled, goneAt time.Time
	energy, ecc     float64
	eccs, pending   int

	findings []finding
	verdict  *collector.Verdict
	reasons  [][]string // labels of accel_device_health_reason
	outage   outage
	xids     xidTotals
}

// hold is the state of one condition on one device.
type hold struct {
	since time.Time // it has held since then
	other bool      // it has failed for some reading
	until time.Time // of grows
	sum   float64
	n     int // readings in sum
}

func newDevice(c *Catalogue) *device {
	return &device{holds: make([]hold, len(c.conditions)), energy: -1}
}

// reread has the device go by c in the stead of old.
func (st *device) reread(old, c *Catalogue) {
	holds := make([]hold, len(c.conditions))
	for i, t := range c.conditions {
		if was, ok := old.condition(t.Reason); ok && was.Family == t.Family {
			holds[i] = st.holds[was.index]
		}
	}
	st.holds = holds
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

// adopt takes over what was told of the device under its address.
func (st *device) adopt(o *device) {
	for _, f := range o.faults {
		if !st.has(f.reason) && len(st.faults) < maxFaults {
			st.faults = append(st.faults, f)
		}
	}
	st.awaited = append(st.awaited, o.awaited...)
	if o.told.After(st.told) {
		st.driver, st.said, st.told = o.driver, o.said, o.told
	}
	if o.outage.since.After(st.outage.since) {
		st.outage.since = o.outage.since
	}
	st.outage.failures += o.outage.failures
}

// driverTold notes what an event said that the driver asks for.
func (st *device) driverTold(a Action, at time.Time) {
	if at.Before(st.told) {
		return
	}
	if a != st.driver {
		st.said = at
	}
	st.driver, st.told = a, at
}

// telling is how long before a reading an event must be for the reading to be
// the newer word of the driver.
const telling = time.Second

// notice compares the device with what it was, and ends what a reset ends.
func (st *device) notice(l *look, now time.Time) {
	if l.gone {
		st.goneAt = now
	}
	if !l.answers {
		return // counters are those of before
	}
	reset := !st.goneAt.IsZero() && l.sampled.After(st.goneAt) ||
		l.energy >= 0 && l.energy < st.energy ||
		l.eccs > 0 && l.eccs == st.eccs && l.ecc < st.ecc ||
		l.pendable && l.pending < st.pending
	speaks := l.driver != unasked && l.sampled.After(st.told.Add(telling))
	if reset || speaks && st.driver > NoAction && l.driver == NoAction {
		st.cure(st.before(l))
	}
	if speaks && l.driver != st.driver {
		st.driver, st.said = l.driver, now
	}
	if !l.sampled.IsZero() {
		st.sampled = l.sampled
	}
	if !st.goneAt.IsZero() && l.sampled.After(st.goneAt) {
		st.goneAt = time.Time{}
	}
	st.energy, st.ecc, st.eccs = l.energy, l.ecc, l.eccs
	if l.pendable {
		st.pending = l.pending
	}
}

// resetTakes is less than any device needs for a reset and the way back.
const resetTakes = 10 * time.Second

// before returns a time at which the reset that l shows had not happened yet.
func (st *device) before(l *look) time.Time {
	return later(later(st.sampled, st.goneAt), l.sampled.Add(-resetTakes))
}

// driverSays returns the driver's own demand.
func (st *device) driverSays() (finding, bool) {
	says, ok := driverSays[st.driver]
	return finding{reason: says.code, severity: says.severity, action: st.driver, rank: rankDriver, since: st.said, text: says.text}, ok
}

// conditions appends those that hold.
func (st *device) conditions(c *Catalogue, l *look, now time.Time, out []finding) []finding {
	for i, t := range c.conditions {
		h, hit := &st.holds[i], &l.hits[i]
		failing := hit.n > 0
		if t.grows {
			failing = h.grown(hit, t, now)
		}
		h.other = h.other || hit.total > hit.n
		if t.Unless != "" && !h.other {
			failing = false
		}
		if !failing {
			h.since = time.Time{}
			continue
		}
		h.since = earliest(h.since, now)
		if t.Severity != None && now.Sub(h.since) >= t.For {
			out = append(out, finding{reason: t.Reason, severity: t.Severity, action: t.Action, rank: rankReading, since: h.since, test: t, n: hit.n, show: hit.show})
		}
	}
	return out
}

// grown reports whether the sum has grown lately. The first sum is the
// measure, and so is one over other readings than before.
func (h *hold) grown(hit *hit, t *test, now time.Time) bool {
	if hit.total > 0 {
		if h.n == hit.total && hit.sum > h.sum {
			h.until = now.Add(t.Lasts)
		}
		h.sum, h.n = hit.sum, hit.total
	}
	return now.Before(h.until)
}

// inherit adds what speaks against the parent.
func inherit(own, parents []finding) []finding {
	for _, p := range parents {
		if p.rank == rankBlind || slices.ContainsFunc(own, func(f finding) bool { return f.reason == p.reason }) {
			continue
		}
		own = append(own, p)
	}
	return own
}
