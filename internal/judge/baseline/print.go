package baseline

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/accel-exporter/accel-exporter/collector"
)

// printHead is the comment at the top of a printed catalogue.
const printHead = `# Approved configurations, as they were found on one node. The first entry that
# matches a device applies to it; a component that is not named is not compared.
# Where several values stand in a list, each of them is approved: take out those
# that are not. A * in a text stands for any characters.
`

// maxPrinted is the maximum size of the catalogue that Print writes, in bytes. It
// is lower than the maximum size of a file.
const maxPrinted = 512 << 10

// Print writes a catalogue of the current state of a node: one entry for each
// model of device, which approves all values of its devices. Comments name the
// devices with missing values. The parsed result gives no drift on the same
// Snapshot. It returns an error if there is nothing to write, or too much.
func Print(snap *collector.Snapshot) ([]byte, error) {
	var p printer
	drivers := driversOf(snap.Node)
	for i := range snap.Devices {
		if d := &snap.Devices[i]; d.Parent == "" && d.Class != "" {
			v := look(d, nil)
			p.add(d.ID, &v, drivers)
		}
	}
	if len(p.groups) == 0 {
		return nil, fmt.Errorf("no device is known for which a catalogue could be written")
	}
	if len(p.groups) > maxEntries {
		return nil, fmt.Errorf("found devices of %d models; a catalogue has at most %d entries", len(p.groups), maxEntries)
	}
	b := p.write()
	if len(b) > maxPrinted {
		return nil, fmt.Errorf("the catalogue of this node has %d bytes; at most %d are written", len(b), maxPrinted)
	}
	return b, nil
}

// printer collects the content of a catalogue.
type printer struct {
	groups []*group
	// IDs of devices that have no name to match, that do not answer, and that
	// have an empty region.
	nameless, silent, empty []string
}

func (p *printer) add(id string, v *view, drivers []collector.Reading) {
	match, ok := matchOf(v)
	if !ok {
		p.nameless = append(p.nameless, id)
		return
	}
	if !v.up {
		p.silent = append(p.silent, id)
	} else if v.anyEmpty() {
		p.empty = append(p.empty, id)
	}
	at := slices.IndexFunc(p.groups, func(g *group) bool { return g.match.key() == match.key() })
	if at < 0 {
		at, p.groups = len(p.groups), append(p.groups, &group{match: match})
	}
	p.groups[at].add(id, v.facts(drivers))
}

func (p *printer) write() []byte {
	var b bytes.Buffer
	b.WriteString(printHead)
	for _, c := range []struct {
		why  string
		list []string
	}{
		{"Left out, as neither their model nor their PCI id is known", p.nameless},
		{"Did not answer, so that nothing they run is approved here", p.silent},
		{"Had a region that was empty or being configured, which is left out", p.empty},
	} {
		if len(c.list) > 0 {
			fmt.Fprintf(&b, "# %s: %s.\n", c.why, ids(c.list))
		}
	}
	b.WriteString("entries:\n")
	slices.SortFunc(p.groups, func(a, b *group) int {
		return cmp.Or(cmp.Compare(a.rank(), b.rank()), cmp.Compare(a.match.key(), b.match.key()))
	})
	names := map[string]bool{}
	for _, g := range p.groups {
		g.write(&b, names)
	}
	return b.Bytes()
}

// matchOf returns the criteria for a device: its model, else its PCI id. It
// returns false for a device that has neither.
func matchOf(v *view) (Match, bool) {
	m := Match{Class: string(v.class)}
	if !slices.Contains([]collector.Class{collector.GPU, collector.FPGA, collector.Switch}, v.class) {
		return m, false
	}
	if literal(v.vendor) {
		m.Vendor = Pattern(v.vendor)
	}
	if literal(v.model) {
		m.Model = Pattern(v.model)
		return m, true
	}
	m.PCIID = PCIID(v.pciID)
	return m, pciID().MatchString(v.pciID)
}

// literal reports whether s is valid in a catalogue and matches only itself.
func literal(s string) bool { return checkText(s) == nil && !strings.Contains(s, "*") }

// key is equal for equal criteria, and orders the others.
func (m *Match) key() string {
	return m.Class + "\xff" + string(m.Vendor) + "\xff" + string(m.Model) + "\xff" + string(m.PCIID)
}
