package main

import (
	"strings"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/judge/health"
)

// catalogued returns the values of the family's labels that come from the health
// catalogue, in the format of Metric.Values.
func catalogued(m *collector.Metric) []string {
	if m != collector.DeviceHealthReason {
		return nil
	}
	var events, actions, conditions []string
	for _, r := range health.Builtin().Reasons() {
		switch {
		case strings.HasPrefix(r, "xid_"), strings.HasPrefix(r, "sxid_"): // hundreds, by the pattern in the table
		case strings.HasPrefix(r, "event_"):
			events = append(events, r)
		case strings.HasPrefix(r, "recovery_action_"):
			actions = append(actions, r)
		default:
			conditions = append(conditions, r)
		}
	}
	return []string{
		"reason of another event: " + strings.Join(events, ", "),
		"reason of a recovery action of the driver: " + strings.Join(actions, ", "),
		"reason of a measured condition: " + strings.Join(conditions, ", ") + "; and those that the file of --health.catalogue adds",
	}
}
