package allocation

import (
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
)

// HoldersAt returns the pods that had a device at a time up to an hour ago, by
// the latest Snapshot: for a device with partitions, the pods of its
// partitions.
func (j *Judge) HoldersAt(device string, at time.Time) []Holder {
	j.mu.Lock()
	defer j.mu.Unlock()
	var out []Holder
	for _, st := range j.affected(&collector.Event{Device: device}) {
		for _, a := range st.allocationsAt(at) {
			out = append(out, a.holder())
		}
	}
	return out
}
