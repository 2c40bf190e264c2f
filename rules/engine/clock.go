package engine

import "time"

// shift moves all times of the engine with the clock of the machine, after the
// clock was set. Ranges and waits keep their length, and no group waits for a
// time that is now far off.
func (e *Engine) shift(by time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.last.IsZero() {
		return
	}
	// In whole milliseconds, as samples have them.
	by = by.Truncate(time.Millisecond)
	move := func(t *time.Time) {
		if !t.IsZero() {
			*t = t.Add(by)
		}
	}
	move(&e.last)
	for i := range e.ring.times {
		e.ring.times[i] += by.Milliseconds()
	}
	for name := range e.ring.lost {
		e.ring.lost[name] += by.Milliseconds()
	}
	for _, g := range e.groups {
		move(&g.next)
		move(&g.last)
		for _, r := range g.rules {
			for _, a := range r.active {
				for _, t := range []*time.Time{&a.activeAt, &a.firedAt, &a.resolvedAt, &a.keepFiringSince, &a.lastSentAt, &a.validUntil} {
					move(t)
				}
			}
		}
	}
	e.o.Log.Info("Clock was set, times of rules are adjusted", "by", by)
}

// clockSet returns by how much the clock was set between two readings, by
// comparison with the monotonic clock; 0 for less than slack.
func clockSet(before, now time.Time, slack time.Duration) time.Duration {
	set := now.Round(0).Sub(before.Round(0)) - now.Sub(before)
	if set.Abs() <= slack {
		return 0
	}
	return set
}
