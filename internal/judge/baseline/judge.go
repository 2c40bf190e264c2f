package baseline

import (
	"slices"
	"sync/atomic"

	"github.com/accel-exporter/accel-exporter/collector"
)

// Options are the inputs of a Judge in addition to the catalogue.
type Options struct {
	// Labels are the labels of the node.
	Labels map[string]string
	// Resources returns the names of the resources by which the device of that ID
	// is allocated; nil means unknown. It is called for every device and Snapshot
	// and must not block.
	Resources func(device string) []string
}

// Judge compares every Snapshot with the catalogue. It implements
// collector.Judge.
type Judge struct {
	options   Options
	catalogue atomic.Pointer[Catalogue]

	// Results of the last Snapshot. A device whose view has not changed is not
	// compared again.
	applied *Catalogue
	drivers []collector.Reading
	devices map[string]*conclusion
	round   uint64
}

// conclusion is the result for one view of a device.
type conclusion struct {
	view     view
	readings []collector.Reading
	round    uint64 // in which the device was last seen
}

// New returns a Judge for c. A nil catalogue compares only the designs in resource
// names.
func New(c *Catalogue, o Options) *Judge {
	j := &Judge{options: o, devices: map[string]*conclusion{}}
	j.catalogue.Store(c)
	return j
}

// Apply replaces the catalogue from the next Snapshot on; c must not be
// changed afterwards. It may be called concurrently.
func (j *Judge) Apply(c *Catalogue) { j.catalogue.Store(c) }

// Judge implements collector.Judge.
func (j *Judge) Judge(snap *collector.Snapshot) {
	c := j.catalogue.Load()
	if c != j.applied || !j.knows(snap.Node) {
		clear(j.devices)
		j.applied, j.drivers = c, driversOf(snap.Node)
	}
	j.round++
	there := 0
	for i := range snap.Devices {
		d := &snap.Devices[i]
		// A partition is covered by the layout of its parent; a device without a
		// class is known from events only.
		if d.Parent != "" || d.Class == "" {
			continue
		}
		known := j.devices[d.ID]
		if known != nil && known.round == j.round {
			continue // a second source has a device of that name
		}
		there++
		var held []string
		if j.options.Resources != nil {
			held = j.options.Resources(d.ID)
		}
		if known == nil || !known.view.shows(d, held) {
			known = j.conclude(look(d, held))
			j.devices[d.ID] = known
		}
		known.round = j.round
		d.Readings = append(d.Readings, known.readings...)
	}
	if there < len(j.devices) {
		for id, known := range j.devices {
			if known.round != j.round {
				delete(j.devices, id)
			}
		}
	}
	if c != nil {
		snap.Node = append(snap.Node, collector.Reading{Metric: collector.BaselineEntries, Value: float64(len(c.Entries))})
	}
}

// knows reports whether the drivers of the node are unchanged.
func (j *Judge) knows(node []collector.Reading) bool {
	n := 0
	for i := range node {
		if node[i].Metric != collector.DriverInfo {
			continue
		}
		if n == len(j.drivers) || !sameReading(&j.drivers[n], &node[i]) {
			return false
		}
		n++
	}
	return n == len(j.drivers)
}

func driversOf(node []collector.Reading) []collector.Reading {
	var out []collector.Reading
	for _, r := range node {
		if r.Metric == collector.DriverInfo {
			r.Labels = slices.Clone(r.Labels)
			out = append(out, r)
		}
	}
	return out
}

// conclude compares one device with its entry and with its resource names.
func (j *Judge) conclude(v view) *conclusion {
	out := &conclusion{view: v}
	facts := v.facts(j.drivers)
	if e := j.applied.entryFor(&v, j.options.Labels); e != nil {
		out.readings = append(out.readings, collector.Reading{Metric: collector.BaselineInfo, Labels: []string{string(e.Name)}, Value: 1})
		for _, c := range compare(facts, &e.Approved) {
			out.readings = append(out.readings, c.reading())
		}
	}
	for _, c := range promised(&v, facts) {
		out.readings = append(out.readings, c.reading())
	}
	return out
}
