package compat

import (
	"strings"

	"github.com/accel-exporter/accel-exporter/collector"
)

// page is a Snapshot prepared for the view. It is built when the devices or
// their families change.
type page struct {
	view  *View
	units []*unit
	node  []collector.Reading
	pods  map[pod]*podFacts
	// labelled are the ids of the fields that are exported as labels.
	labelled map[uint16]bool
}

// unit is a device that DCGM supports: a GPU, a MIG instance, a switch or a CPU.
type unit struct {
	device *collector.Device
	// readings are the indexes of the device's readings by family.
	readings map[*collector.Metric][]int
	class    string
	board    *unit // of an instance; nil for a whole device
	// index, uuid, pci and model describe the board.
	index, uuid, pci, model string
	profile, gi, ci         string // of an instance; ci only if the GPU instance has several
	holders                 []holder
	facts                   []factOf
}

// read returns the page of a Snapshot.
func (v *View) read(s *collector.Snapshot) *page {
	p := &page{view: v, node: s.Node, pods: podsOf(s.Node, v.options.PodLabels), labelled: map[uint16]bool{}}
	boards := map[string]*unit{}
	for i := range s.Devices {
		d := &s.Devices[i]
		if u := unitOf(d); u != nil {
			p.units = append(p.units, u)
			if d.Parent == "" {
				boards[d.ID] = u
			}
		}
	}
	instances := map[[2]string]int{} // devices in a GPU instance
	kept := p.units[:0]
	for _, u := range p.units {
		if u.device.Parent != "" && !u.join(boards[u.device.Parent]) {
			continue
		}
		kept = append(kept, u)
		instances[[2]string{u.uuid, u.gi}]++
	}
	p.units = kept
	for _, u := range p.units {
		if u.board != nil && instances[[2]string{u.uuid, u.gi}] == 1 {
			u.ci = ""
		}
		u.facts = p.factsOf(u)
	}
	return p
}

// unitOf returns d as a unit, or nil if DCGM does not support it. It reads the
// labels of accel_device_info, which is present while d is down too, without an index
// if the driver has given that to another device.
func unitOf(d *collector.Device) *unit {
	for i := range d.Readings {
		r := &d.Readings[i]
		if r.Metric != collector.DeviceInfo || r.Label("vendor") != "nvidia" || r.Label("index") == "" && d.Down == "" {
			continue
		}
		u := &unit{device: d, class: r.Label("class"), index: r.Label("index"), uuid: d.ID, model: r.Label("model")}
		u.pci = busID(r.Label("pci_address"))
		u.profile = r.Label("profile")
		u.holders = holdersOf(d)
		u.readings = map[*collector.Metric][]int{}
		for j := range d.Readings {
			m := d.Readings[j].Metric
			u.readings[m] = append(u.readings[m], j)
		}
		return u
	}
	return nil
}

// join makes u an instance of its board. The index of an instance is
// parent:gi:ci.
func (u *unit) join(board *unit) bool {
	parts := strings.Split(u.index, ":")
	if board == nil || len(parts) != 3 {
		return false
	}
	u.board, u.gi, u.ci = board, parts[1], parts[2]
	u.index, u.uuid, u.pci, u.model = board.index, board.uuid, board.pci, board.model
	return true
}

// values returns the values of readings of u, by their positions.
func (u *unit) values(rows ...int) []float64 {
	values := make([]float64, len(rows))
	for i, row := range rows {
		values[i] = u.device.Readings[row].Value
	}
	return values
}

// rows returns the positions of the readings that a source needs, and their weights.
// It returns nil if one is missing.
func (u *unit) rows(s *source) ([]int, []float64) {
	var rows []int
	var weights []float64
	for i := range s.terms {
		before, t := len(rows), &s.terms[i]
		for _, j := range u.readings[t.metric] {
			r := &u.device.Readings[j]
			if !t.matches(r) {
				continue
			}
			if w, ok := t.weightOf(r); ok {
				rows, weights = append(rows, j), append(weights, w)
			}
		}
		if len(rows) == before && !s.any {
			return nil, nil
		}
	}
	return rows, weights
}

// busID returns a PCI address in the format of NVML and DCGM: 00000000:1B:00.0.
func busID(pci string) string {
	domain, rest, ok := strings.Cut(pci, ":")
	if !ok || len(domain) > 8 {
		return pci
	}
	return strings.Repeat("0", 8-len(domain)) + strings.ToUpper(domain+":"+rest)
}
