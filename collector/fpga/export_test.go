package fpga

import "time"

// No test leaves a read hanging unless it sets this, but the machine may be
// busy.
func init() { closeGrace, listEvery = 2*time.Minute, 0 }
