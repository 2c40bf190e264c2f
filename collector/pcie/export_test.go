package pcie

import "time"

// Nothing hangs at the end of a test, but the machine may be busy. Each round reads
// every function.
func init() { closeBound, readEvery = 2*time.Minute, 0 }

// ReadEvery is how often a function is read.
var ReadEvery = &readEvery
