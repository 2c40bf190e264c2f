// Package attention finds the devices that need attention and names the incident: one
// series with all that a message to a person needs. All series of such a device are
// served at every --metrics.detail, so that its details need no restart of the
// exporter.
package attention

import (
	"maps"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
)

// stay is how long a device keeps its attention after the last cause.
const stay = time.Hour

// Judge sets Device.Attention and publishes accel_device_incident_timestamp_seconds. It
// runs after the judges of health and of allocations.
type Judge struct {
	devices map[string]*device
	round   uint64
}

type device struct {
	until  time.Time // zero where the device never needed attention
	errors float64   // sum of its error counters, to see growth
	seen   bool      // errors is a sum of an earlier Snapshot
	round  uint64

	incident incident
}

// New returns a Judge that has seen nothing.
func New() *Judge { return &Judge{devices: map[string]*device{}} }

// Judge implements collector.Judge.
func (j *Judge) Judge(s *collector.Snapshot) {
	j.round++
	for i := range s.Devices {
		d := &s.Devices[i]
		st := j.devices[d.ID]
		if st == nil {
			st = &device{}
			j.devices[d.ID] = st
		}
		st.round = j.round
		if st.cause(d) {
			st.until = s.Time.Add(stay)
		}
		d.Attention = s.Time.Before(st.until)
		if d.Parent == "" { // a partition is repaired through its parent
			st.publish(s.Time, d, partitions(s, d))
		}
	}
	maps.DeleteFunc(j.devices, func(_ string, st *device) bool { return st.round != j.round })
}

// partitions returns the partitions of d where they are needed: if d is unhealthy.
func partitions(s *collector.Snapshot, d *collector.Device) (list []*collector.Device) {
	if kind(d.Verdict) == "" {
		return nil
	}
	for i := range s.Devices {
		if s.Devices[i].Parent == d.ID {
			list = append(list, &s.Devices[i])
		}
	}
	return list
}

// cause reports whether d needs attention now: it is degraded or failed, an NVLink
// is down, or errors of its NVLink or C2C links have grown. Corrected errors of
// memory and PCIe occur on healthy devices and are no cause.
func (st *device) cause(d *collector.Device) bool {
	found := d.Verdict != nil && (d.Verdict.State == "degraded" || d.Verdict.State == "failed")
	errors, counted := 0.0, false
	for i := range d.Readings {
		switch r := &d.Readings[i]; r.Metric {
		case collector.NVLinkUp:
			found = found || r.Value == 0
		case collector.GPUNVLinkErrors, collector.C2CErrors:
			errors, counted = errors+r.Value, true
		}
	}
	if !counted {
		return found // its source has not answered yet
	}
	found = found || st.seen && errors > st.errors
	st.errors, st.seen = errors, true
	return found
}
