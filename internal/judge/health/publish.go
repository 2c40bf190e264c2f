package health

import (
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
)

// publish adds the verdict and its families to the device. begin is since when the faults
// of events are known, zero for ever.
func (st *device) publish(d *collector.Device, begin time.Time) {
	v := st.verdict
	d.Verdict = v
	r := d.Readings
	for _, state := range states {
		r = append(r, collector.Reading{Metric: collector.DeviceHealth, Labels: []string{state}, Value: boolValue(state == v.State)})
	}
	for _, labels := range st.reasons {
		r = append(r, collector.Reading{Metric: collector.DeviceHealthReason, Labels: labels, Value: 1})
	}
	if d.Parent == "" {
		// A partition is repaired through its parent.
		for _, action := range actions[NoAction:] {
			r = append(r, collector.Reading{Metric: collector.DeviceAction, Labels: []string{action}, Value: boolValue(action == v.Action)})
		}
		r = append(r, collector.Reading{Metric: collector.DeviceFailures, Value: st.failures})
		if begin.After(st.ended) {
			r = append(r, collector.Reading{Metric: collector.FaultsUnknown, Value: float64(begin.Unix())})
		}
	}
	d.Readings = r
}

func boolValue(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
