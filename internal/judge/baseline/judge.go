package baseline

import (
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
}

// New returns a Judge for c. A nil catalogue compares only the designs in resource
// names.
func New(c *Catalogue, o Options) *Judge {
	j := &Judge{options: o}
	j.catalogue.Store(c)
	return j
}

// Apply replaces the catalogue from the next Snapshot on; c must not be
// changed afterwards. It may be called concurrently.
func (j *Judge) Apply(c *Catalogue) { j.catalogue.Store(c) }

// Judge implements collector.Judge.
func (j *Judge) Judge(snap *collector.Snapshot) {
	c := j.catalogue.Load()
	seen := make(map[string]bool, len(snap.Devices))
	for i := range snap.Devices {
		d := &snap.Devices[i]
		// A partition is covered by the layout of its parent; a device without a
		// class is known from events only; a second source may have a device of
		// the same name.
		if d.Parent != "" || d.Class == "" || seen[d.ID] {
			continue
		}
		seen[d.ID] = true
		var designs []Expectation
		if j.options.Resources != nil {
			designs = expectations(j.options.Resources(d.ID))
		}
		if c != nil || len(designs) > 0 {
			d.Readings = append(d.Readings, c.judge(d, snap.Node, j.options.Labels, designs)...)
		}
	}
}

// judge compares one device with its entry and with the designs that its
// resource names encode.
func (c *Catalogue) judge(d *collector.Device, node []collector.Reading, labels map[string]string, designs []Expectation) []collector.Reading {
	var out []collector.Reading
	v := look(d)
	facts := v.facts(node)
	if e := c.entryFor(&v, labels); e != nil {
		out = append(out, collector.Reading{Metric: collector.BaselineInfo, Labels: []string{string(e.Name)}, Value: 1})
		for _, x := range compare(facts, &e.Approved) {
			out = append(out, x.reading())
		}
	}
	for _, x := range promised(designs, facts, v.anyEmpty()) {
		out = append(out, x.reading())
	}
	return out
}
