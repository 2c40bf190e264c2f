package main

import (
	"maps"

	"github.com/accel-exporter/accel-exporter/collector"
)

// condition is the part of a device's state whose change is evaluated at once.
type condition struct{ down, health, reasons string }

// codes joins the codes of reasons. Healthy devices have none, and most others
// one.
func codes(reasons []collector.Reason) (all string) {
	for i := range reasons {
		if all != "" {
			all += " "
		}
		all += reasons[i].Code
	}
	return all
}

// urgent reports whether a Snapshot has an event, or a device that came, went
// or changed its condition since the previous Snapshot. seen has the previous
// conditions and is updated.
func urgent(seen map[string]condition, snap *collector.Snapshot) bool {
	due := len(snap.News) > 0
	for i := range snap.Devices {
		d := &snap.Devices[i]
		now := condition{down: d.Down}
		if d.Verdict != nil {
			now.health, now.reasons = d.Verdict.State, codes(d.Verdict.Reasons)
		}
		if was, known := seen[d.ID]; !known || was != now {
			due, seen[d.ID] = true, now
		}
	}
	if len(seen) > len(snap.Devices) {
		present := make(map[string]bool, len(snap.Devices))
		for i := range snap.Devices {
			present[snap.Devices[i].ID] = true
		}
		maps.DeleteFunc(seen, func(id string, _ condition) bool { return !present[id] })
		due = true
	}
	return due
}
