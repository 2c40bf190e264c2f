package allocation

import (
	"time"
)

// bridge is the longest gap in the knowledge of a device's use that does not
// end an idle period. The gap itself does not count as idle time.
const bridge = time.Minute

// account adds the time since the previous Snapshot by the state of the
// allocation.
func (a *allocation) account(now, previous time.Time) {
	i := &a.idleness
	a.measure()
	switch i.state {
	case active:
		if i.last.IsZero() && !i.firstUncertain && !a.after.IsZero() {
			i.first = now
		}
		i.last, i.measured = now, true
		i.from, i.pending, i.unknownFrom = time.Time{}, 0, time.Time{}
	case unattributable:
		i.from, i.pending, i.unknownFrom = time.Time{}, 0, time.Time{}
		i.unknownBefore, i.firstUncertain = now, i.firstUncertain || i.last.IsZero()
	case idle:
		begin := latest(i.unknownBefore, a.device.knownFrom, i.last)
		counted := latest(previous, begin)
		if i.from.IsZero() {
			i.from, counted = begin, begin
		} else if !i.unknownFrom.IsZero() {
			counted = now // the time in between was not observed
		}
		i.unknownFrom, i.measured = time.Time{}, true
		i.pending += max(0, now.Sub(counted).Seconds())
		a.settle(now)
	case unknown:
		i.firstUncertain = i.firstUncertain || i.last.IsZero()
		if i.unknownFrom.IsZero() {
			i.unknownFrom = latest(previous, a.since)
		}
		if i.from.IsZero() || now.Sub(i.unknownFrom) > bridge {
			i.from, i.pending, i.unknownBefore = time.Time{}, 0, now
		}
	}
}

// settle counts the idle period once it is longer than the grace period.
func (a *allocation) settle(now time.Time) {
	i := &a.idleness
	if i.exempt {
		i.pending = 0
	}
	if now.Sub(i.from) < a.grace() {
		return
	}
	i.total += i.pending
	a.cost.total += i.pending * a.cost.perHour * a.share() / 3600
	i.pending = 0
}

// grace is the time after which an idle period counts: until then a counter may
// be older than the period.
func (a *allocation) grace() time.Duration {
	return max(a.idleness.settings.Grace, a.device.blind())
}

// idleFor returns the length of the current idle period, zero without one, and
// false if it is unknown.
func (a *allocation) idleFor(now time.Time) (time.Duration, bool) {
	i := &a.idleness
	if i.exempt {
		return 0, false
	}
	switch i.state {
	case active:
		return 0, true
	case idle:
		if d := now.Sub(i.from); d >= a.grace() {
			return d, true
		}
		return 0, true
	}
	return 0, false
}
