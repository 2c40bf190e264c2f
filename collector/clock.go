package collector

import "time"

// clockSlack is the difference of wall and monotonic time above which the clock
// was set.
const clockSlack = time.Second

// ClockSet returns by how much the time of day was set between two readings of
// time.Now, zero for less than a second. The monotonic clock decides. It stops during
// suspend, so a suspend counts as a setting of the clock: durations leave it out.
func ClockSet(before, now time.Time) time.Duration {
	set := now.Round(0).Sub(before.Round(0)) - now.Sub(before)
	if set.Abs() < clockSlack {
		return 0
	}
	return set
}

// OnClock returns t as the clock of now shows it: where the clock was set since t was
// read, the time of day of t is as long ago as t is. Without it, a time on the page
// would be wrong by hours after the clock of a node was corrected.
func OnClock(t, now time.Time) time.Time {
	if ClockSet(t, now) == 0 {
		return t
	}
	return now.Add(t.Sub(now))
}

// anchored returns t, which has no monotonic reading, with one.
func anchored(t, now time.Time) time.Time { return now.Add(t.Sub(now)) }
