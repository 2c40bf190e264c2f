package pcie

import (
	"strconv"

	"github.com/accel-exporter/accel-exporter/collector"
)

// end is one end of a link between a card and the root: a function whose link
// and errors are reported with the card.
type end struct {
	*slot
	address []string   // label values: pci_address
	labels  []string   // pci_address, link, end
	total   [][]string // by severity: labels, severity
	// messages are labels by severity: pci_address, severity.
	messages [][]string
	// named are the labels of errors by severity and name. An error that has
	// once been present is reported from then on.
	named [severities]map[string][]string
}

// newEnd returns the end at a position on the way to the root. Every second one
// is a port: the inside of a switch has no link.
func newEnd(sl *slot, address string, at int) *end {
	side := "device"
	if at%2 == 1 {
		side = "port"
	}
	e := &end{slot: sl, address: []string{address}, labels: []string{address, strconv.Itoa(at / 2), side}}
	for sev := range severities {
		e.total = append(e.total, append(e.labels[:3:3], sev.String()))
		e.messages = append(e.messages, []string{address, sev.String()})
		e.named[sev] = map[string][]string{}
	}
	return e
}

func (e *end) readings(d *collector.Device) {
	if e.Stuck {
		d.SetBool(collector.PCIeResponding, false, e.address...)
	}
	if !e.Valid || e.gone() {
		return
	}
	s := &e.last
	if s.asked {
		d.SetBool(collector.PCIeResponding, !s.silent, e.address...)
		e.number(d, collector.PCIeLinkSpeed, s.now.speed, e.labels)
		e.number(d, collector.PCIeLinkWidth, s.now.lanes, e.labels)
		e.number(d, collector.PCIeLinkSpeedMax, s.limit.speed, e.labels)
		e.number(d, collector.PCIeLinkWidthMax, s.limit.lanes, e.labels)
	}
	for sev := range severities {
		e.errors(d, sev, &s.errors[sev])
		e.number(d, collector.AERRootMessages, s.messages[sev], e.messages[sev])
	}
}

func (e *end) number(d *collector.Device, m *collector.Metric, n number, labels []string) {
	switch {
	case n.measured:
		d.Set(m, n.value, labels...)
	case n.reject != "" && !e.counted:
		d.Reject(m, n.reject)
	}
}

func (e *end) errors(d *collector.Device, sev severity, r *report) {
	if r.counted {
		d.Set(collector.AERReports, float64(r.total), e.total[sev]...)
	}
	if r.garbled && !e.counted {
		d.Reject(collector.AERErrors, collector.RejectType)
	}
	for _, c := range r.counts {
		labels := e.named[sev][c.name]
		if labels == nil {
			if c.n == 0 {
				continue // AERReports is 0 for it
			}
			labels = append(e.total[sev][:4:4], c.name)
			e.named[sev][c.name] = labels
		}
		d.Set(collector.AERErrors, float64(c.n), labels...)
	}
}
