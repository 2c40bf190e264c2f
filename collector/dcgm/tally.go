package dcgm

import "github.com/accel-exporter/accel-exporter/collector"

// tally counts return codes other than success.
type tally []collector.CallError

// count counts a return code and reports whether it is success.
func (t *tally) count(call string, c code) bool {
	if c == ok {
		return true
	}
	name := c.String()
	for i := range *t {
		if e := &(*t)[i]; e.Call == call && e.Code == name {
			e.Count++
			return false
		}
	}
	*t = append(*t, collector.CallError{Call: call, Code: name, Count: 1})
	return false
}

// take returns the counts and resets them.
func (t *tally) take() []collector.CallError {
	counts := *t
	*t = nil
	return counts
}
