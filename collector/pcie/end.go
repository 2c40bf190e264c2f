package pcie

import (
	"slices"
	"strconv"

	"github.com/accel-exporter/accel-exporter/collector"
)

// end is one end of a link between a card and the root: a function whose link
// and errors are reported with the card.
type end struct {
	*slot
	labels []string // pci_address, link, end
	alone  bool     // the other end of the link is not visible
	// named are the errors by severity that have once been present: they are
	// reported from then on.
	named [severities]map[string]bool
}

// newEnd returns the end at a position on the way to the root. Every second one
// is a port: the inside of a switch has no link.
func newEnd(sl *slot, address string, at int) *end {
	side := "device"
	if at%2 == 1 {
		side = "port"
	}
	e := &end{slot: sl, labels: []string{address, strconv.Itoa(at / 2), side}}
	for sev := range severities {
		e.named[sev] = map[string]bool{}
	}
	return e
}

func (e *end) readings(d *collector.Device) {
	if e.Stuck {
		d.SetBool(collector.PCIeResponding, false, e.address)
	}
	if !e.Valid || e.gone() {
		return
	}
	s := &e.last
	if s.asked {
		d.SetBool(collector.PCIeResponding, !s.silent, e.address)
		e.number(d, collector.PCIeLinkSpeed, s.now.speed)
		e.number(d, collector.PCIeLinkWidth, s.now.lanes)
		e.number(d, collector.PCIeLinkSpeedMax, s.limit.speed)
		if !e.alone { // the maximum of one end is none of the link
			e.number(d, collector.PCIeLinkWidthMax, s.limit.lanes)
		}
	}
	for sev := range severities {
		e.errors(d, sev, &s.errors[sev])
	}
}

func (e *end) number(d *collector.Device, m *collector.Metric, n number) {
	switch {
	case n.value > 0:
		d.Set(m, n.value, e.labels...)
	case n.reject != "" && !e.counted:
		d.Reject(m, n.reject)
	}
}

func (e *end) errors(d *collector.Device, sev severity, r *report) {
	of := append(slices.Clone(e.labels), sev.String())
	if r.counted {
		d.Set(collector.AERReports, float64(r.total), of...)
	}
	if r.garbled && !e.counted {
		d.Reject(collector.AERErrors, collector.RejectType)
	}
	for _, c := range r.counts {
		// Before the first error AERReports is 0 for it.
		if e.named[sev][c.name] = e.named[sev][c.name] || c.n > 0; e.named[sev][c.name] {
			d.Set(collector.AERErrors, float64(c.n), append(slices.Clone(of), c.name)...)
		}
	}
}
