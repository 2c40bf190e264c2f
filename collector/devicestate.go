package collector

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// deviceState is the state of one device.
type deviceState struct {
	device  Device // as last seen; Readings as last read with success
	down    string // Device.Down of the latest round, or ReasonMissing
	missing time.Time
	totals  totals
	// recalled: its identity is from Recall, and it has not answered since.
	recalled bool
}

// render returns the device as published: every reading while the device
// answers, else the readings whose Kind stays.
func (ds *deviceState) render(sourceUp bool, now time.Time) Device {
	d := ds.device
	d.Sampled = OnClock(d.Sampled, now)
	d.Down = ds.down
	up := sourceUp && ds.down == "" && d.Class != ""
	readings := make([]Reading, 0, len(d.Readings)+len(ds.totals)+2)
	for _, r := range d.Readings {
		if up || r.Metric.Kind.Stays() {
			readings = append(readings, r)
		}
	}
	readings = append(readings, ds.totals...)
	if d.Witness {
		d.Readings = readings // a witness does not know whether the device answers
		return d
	}
	if sourceUp && d.Class != "" {
		readings = append(readings, Reading{DeviceUp, []string{ds.down}, boolValue(up)})
	}
	if !d.Sampled.IsZero() {
		readings = append(readings, Reading{DeviceSampleTime, nil, seconds(d.Sampled)})
	}
	d.Readings = readings
	return d
}

// samePlace reports whether d was where o is: at its PCI address or, where o
// has none, at its index.
func (d *Device) samePlace(o *Device) bool {
	if o.PCI != "" {
		return d.PCI == o.PCI
	}
	return len(o.KubeIDs) > 0 && slices.Contains(d.KubeIDs, o.KubeIDs[0])
}

// remember completes d, which does not answer, with the identity and counters of
// its last answer.
func (d *Device) remember(was *Device) {
	d.Parent = cmp.Or(d.Parent, was.Parent)
	d.Class = cmp.Or(d.Class, was.Class)
	d.Vendor = cmp.Or(d.Vendor, was.Vendor)
	d.Model = cmp.Or(d.Model, was.Model)
	d.PCI = cmp.Or(d.PCI, was.PCI)
	if d.KubeIDs == nil {
		d.KubeIDs = was.KubeIDs
	}
	if d.Sampled.Before(was.Sampled) {
		d.Sampled = was.Sampled
	}
	own := d.Readings
	for _, r := range staying(was.Readings) {
		// A newer Info replaces the older one, whatever its labels.
		replaced := func(o Reading) bool { return o.sameSeries(&r) || o.Metric == r.Metric && r.Metric.Kind == Info }
		if !slices.ContainsFunc(own, replaced) {
			d.Readings = append(d.Readings, r)
		}
	}
}

// keepCounters adds to d, which answers, the earlier counters that this round
// could not read.
func (d *Device) keepCounters(was *Device) {
	if slices.EqualFunc(d.Readings, was.Readings, func(a, b Reading) bool { return a.sameSeries(&b) }) {
		return // as in nearly every round
	}
	own := d.Readings
	for _, r := range was.Readings {
		if r.Metric.Kind == Counter && !slices.ContainsFunc(own, func(o Reading) bool { return o.sameSeries(&r) }) {
			d.Readings = append(d.Readings, r)
		}
	}
}

// partition returns the ID of the only partition at a place of a device (see
// Event.Place), or "".
func (s *Sampler) partition(device, place string) string {
	name, found := "MIG-"+device+"/"+place, ""
	for _, st := range s.sources {
		for id, ds := range st.devices {
			if d := &ds.device; d.Parent != device || !slices.ContainsFunc(append([]string{id}, d.KubeIDs...), func(known string) bool {
				return known == name || strings.HasPrefix(known, name+"/")
			}) {
				continue
			}
			if found != "" && found != id {
				return "" // a GPU instance with several compute instances
			}
			found = id
		}
	}
	return found
}

// has reports whether a source has a device of that ID.
func (s *Sampler) has(id string) bool {
	return slices.ContainsFunc(s.sources, func(st *sourceState) bool { return st.devices[id] != nil })
}
