package health

import (
	"github.com/accel-exporter/accel-exporter/collector"
)

var (
	stateLabels  = each(states)
	actionLabels = each(actions)
)

// each returns label slices with one value each, which all Snapshots share.
func each(values []string) [][]string {
	out := make([][]string, len(values))
	for i, v := range values {
		out[i] = []string{v}
	}
	return out
}

// publish adds the verdict and its families to the device.
func (st *device) publish(d *collector.Device) {
	v := st.verdict
	d.Verdict = v
	r := d.Readings
	if most := len(r) + len(states) + len(actions) + len(st.reasons) + 1; cap(r) < most {
		r = append(make([]collector.Reading, 0, most), r...)
	}
	for i, state := range states {
		r = append(r, collector.Reading{Metric: collector.DeviceHealth, Labels: stateLabels[i], Value: boolValue(state == v.State)})
	}
	for _, labels := range st.reasons {
		r = append(r, collector.Reading{Metric: collector.DeviceHealthReason, Labels: labels, Value: 1})
	}
	if d.Parent == "" {
		// A partition is repaired through its parent.
		for i := NoAction; i < numberOfActions; i++ {
			r = append(r, collector.Reading{Metric: collector.DeviceAction, Labels: actionLabels[i], Value: boolValue(actions[i] == v.Action)})
		}
		r = append(r, collector.Reading{Metric: collector.DeviceFailures, Value: st.failures})
	}
	d.Readings = r
}

func boolValue(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
