package fpga

import "time"

// Nothing hangs at the end of a test that does not say so, but the machine may
// be busy.
func init() { closeGrace = 2 * time.Minute }
