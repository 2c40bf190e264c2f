//go:build !linux

package kernellog

import "time"

// bootTime is unknown: only Linux has this log.
func bootTime() time.Time { return time.Time{} }
