package kernellog

import (
	"time"

	"golang.org/x/sys/unix"
)

// bootTime returns the time of day at which the kernel's log clock was 0. That
// clock and CLOCK_MONOTONIC stop during suspend: a record from before the last
// suspend is dated too late by its length.
func bootTime() time.Time {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) != nil {
		return time.Time{}
	}
	return time.Now().Round(0).Add(-time.Duration(ts.Nano()))
}
