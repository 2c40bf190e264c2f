//go:build !linux

package kernellog

import "time"

// bootTime is zero: only Linux has this log.
func bootTime() time.Time { return time.Time{} }
