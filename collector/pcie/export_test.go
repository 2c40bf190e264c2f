package pcie

import "time"

// Nothing hangs at the end of a test, but the machine may be busy.
func init() { closeBound = 2 * time.Minute }
