package rules

import "time"

// Shift has the engine believe that the clock was set; a test cannot set it.
func (e *Engine) Shift(by time.Duration) { e.shift(by) }
