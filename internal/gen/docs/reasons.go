package main

import (
	"strings"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/judge/health"
)

// catalogued are the values of the family's labels that follow from the
// catalogue of health, in the form of Metric.Values.
func catalogued(m *collector.Metric) []string {
	if m != collector.DeviceHealthReason {
		return nil
	}
	var events, demands, conditions []string
	for _, r := range health.Builtin().Reasons() {
		switch {
		case strings.HasPrefix(r, "xid_"), strings.HasPrefix(r, "sxid_"): // hundreds, by the pattern in the table
		case strings.HasPrefix(r, "event_"):
			events = append(events, r)
		case strings.HasPrefix(r, "recovery_action_"):
			demands = append(demands, r)
		default:
			conditions = append(conditions, r)
		}
	}
	return []string{
		"reason for another event: " + strings.Join(events, ", "),
		"reason for what the driver asks for: " + strings.Join(demands, ", "),
		"reason for what is read: " + strings.Join(conditions, ", ") + "; and those that the file in --health.catalogue adds",
	}
}
