package baseline

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/accel-exporter/accel-exporter/collector"
)

// printHead is the comment at the top of a printed catalogue.
const printHead = `# Approved configurations, as they were found on one node. The first entry that
# matches a device applies to it; a component that is not named is not compared.
# Where several values stand in a list, each of them is approved: take out those
# that are not. A * in a text stands for any characters.
`

// printed is an Entry of some devices.
type printed struct {
	Entry
	key     string // of its Match
	devices []string
	facts   []fact // of all the devices
}

// Print writes a catalogue of the current state of a node: one entry for each
// model of device, which approves all values of its devices. Comments name the
// devices with missing values. The parsed result gives no drift on the same
// Snapshot. It returns an error if there is nothing to write.
func Print(snap *collector.Snapshot) ([]byte, error) {
	var entries []*printed
	var nameless, silent, empty []string
	for i := range snap.Devices {
		d := &snap.Devices[i]
		if d.Parent != "" || d.Class == "" {
			continue
		}
		v := look(d)
		match, ok := matchOf(&v)
		switch {
		case !ok:
			nameless = append(nameless, d.ID)
			continue
		case !v.up:
			silent = append(silent, d.ID)
		case v.anyEmpty():
			empty = append(empty, d.ID)
		}
		key := fmt.Sprint(match)
		at := slices.IndexFunc(entries, func(e *printed) bool { return e.key == key })
		if at < 0 {
			at, entries = len(entries), append(entries, &printed{Entry: Entry{Match: match}, key: key})
		}
		e := entries[at]
		e.devices = append(e.devices, d.ID)
		e.facts = append(e.facts, v.facts(snap.Node)...)
	}
	if len(entries) == 0 {
		return nil, errors.New("no device is known for which a catalogue could be written")
	}
	// An entry must not hide another: less specific entries come later.
	slices.SortFunc(entries, func(a, b *printed) int {
		return cmp.Or(cmp.Compare(a.Match.missing(), b.Match.missing()), strings.Compare(a.key, b.key))
	})
	var b bytes.Buffer
	b.WriteString(printHead)
	for _, c := range []struct {
		why  string
		list []string
	}{
		{"Left out, as neither their model nor their PCI id is known", nameless},
		{"Did not answer, so that nothing they run is approved here", silent},
		{"Had a region that was empty or being configured, which is left out", empty},
	} {
		if len(c.list) > 0 {
			fmt.Fprintf(&b, "# %s: %s.\n", c.why, ids(c.list))
		}
	}
	b.WriteString("entries:\n")
	names := map[string]bool{}
	for _, e := range entries {
		e.Name = Pattern(e.Match.name(names))
		e.approve()
		fmt.Fprintf(&b, "\n# %s.\n", ids(e.devices))
		enc := yaml.NewEncoder(&b)
		enc.SetIndent(2)
		if err := enc.Encode([]Entry{e.Entry}); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}

// matchOf returns the criteria for a device: its model, else its PCI id. It
// returns false for a device that has neither.
func matchOf(v *view) (Match, bool) {
	m := Match{Class: string(v.Class)}
	if !slices.Contains([]collector.Class{collector.GPU, collector.FPGA, collector.Switch}, v.Class) {
		return m, false
	}
	if literal(v.Vendor) {
		m.Vendor = Pattern(v.Vendor)
	}
	if literal(v.Model) {
		m.Model = Pattern(v.Model)
		return m, true
	}
	m.PCIID = PCIID(v.pciID)
	return m, pciID().MatchString(v.pciID)
}

// literal reports whether s is valid in a catalogue and matches only itself.
func literal(s string) bool { return checkText(s) == nil && !strings.Contains(s, "*") }

// missing grows with the criteria that an entry lacks.
func (m *Match) missing() int {
	missing := 0
	if m.Model == "" {
		missing += 2
	}
	if m.Vendor == "" {
		missing++
	}
	return missing
}

// name returns a short unique name made from the model.
func (m *Match) name(names map[string]bool) string {
	text, vendor := cmp.Or(string(m.Model), string(m.PCIID)), string(m.Vendor)
	if !strings.HasPrefix(strings.ToLower(text), strings.ToLower(vendor)) {
		text = vendor + " " + text
	}
	slug := strings.Join(strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9')
	}), "-")
	slug = cmp.Or(slug[:min(len(slug), maxText/2)], m.Class)
	name := slug
	for n := 2; names[name]; n++ {
		name = slug + "-" + strconv.Itoa(n)
	}
	names[name] = true
	return name
}

// approve approves the facts. A component with a value that is invalid in a
// catalogue is left out.
func (e *printed) approve() {
	invalid := map[string]bool{}
	for _, f := range e.facts {
		if checkText(f.value) != nil || f.name != "" && checkText(f.name) != nil {
			invalid[f.component()] = true
		}
	}
	for _, f := range e.facts {
		if !invalid[f.component()] {
			e.Approved.add(f)
		}
	}
}

// ids lists devices for a comment.
func ids(list []string) string {
	const most = 16
	short := make([]string, 0, most)
	for _, id := range list[:min(len(list), most)] {
		short = append(short, strings.Trim(strconv.QuoteToASCII(brief(id)), `"`))
	}
	text := strings.Join(short, ", ")
	if more := len(list) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
