package pcie

import "time"

// Nothing hangs at the end of a test, but the machine may be busy. Each round reads the
// error counts.
func init() { closeBound, errorsEvery = 2*time.Minute, 0 }

// ErrorsEvery is how often error counts are read.
var ErrorsEvery = &errorsEvery
