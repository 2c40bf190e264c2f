package baseline

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// group is the set of devices of one entry.
type group struct {
	match   Match
	devices []string
	sets    []printedSet
}

// printedSet is the set of values of one component on the devices of a group.
type printedSet struct {
	section, name string
	values        []string
	unfit         bool // one of the values is invalid in a catalogue
}

// fits reports whether the set is valid in a catalogue. A component without a set
// is not compared.
func (s printedSet) fits() bool { return !s.unfit && len(s.values) <= maxSet }

// rank orders entries so that none hides another: less specific entries come
// later.
func (g *group) rank() int {
	rank := 0
	if g.match.Model == "" {
		rank += 2
	}
	if g.match.Vendor == "" {
		rank++
	}
	return rank
}

func (g *group) add(id string, facts []fact) {
	g.devices = append(g.devices, id)
	for _, f := range facts {
		at := slices.IndexFunc(g.sets, func(s printedSet) bool { return s.section == f.section && s.name == f.name })
		if at < 0 {
			at, g.sets = len(g.sets), append(g.sets, printedSet{section: f.section, name: f.name})
		}
		s := &g.sets[at]
		s.unfit = s.unfit || checkText(f.value) != nil || f.name != "" && checkText(f.name) != nil
		if !slices.Contains(s.values, f.value) {
			s.values = append(s.values, f.value)
		}
	}
}

func (g *group) write(b *bytes.Buffer, names map[string]bool) {
	fmt.Fprintf(b, "\n  # %s.\n", ids(g.devices))
	fmt.Fprintf(b, "  - name: %s\n    match:\n      class: %s\n", quote(g.name(names)), g.match.Class)
	if g.match.Vendor != "" {
		fmt.Fprintf(b, "      vendor: %s\n", quote(string(g.match.Vendor)))
	}
	if g.match.Model != "" {
		fmt.Fprintf(b, "      model: %s\n", quote(string(g.match.Model)))
	}
	if g.match.PCIID != "" {
		fmt.Fprintf(b, "      pci_id: %s\n", quote(string(g.match.PCIID)))
	}
	if !slices.ContainsFunc(g.sets, printedSet.fits) {
		b.WriteString("    approved: {}\n")
		return
	}
	b.WriteString("    approved:\n")
	for _, section := range []string{sectionDriver, sectionCUDA, sectionModule, sectionMIG, sectionFirmware, sectionBitstream, sectionRootKey} {
		g.writeSection(b, section)
	}
}

func (g *group) writeSection(b *bytes.Buffer, section string) {
	var sets []printedSet
	for _, s := range g.sets {
		if s.section == section && s.fits() {
			slices.Sort(s.values)
			sets = append(sets, s)
		}
	}
	slices.SortFunc(sets, func(a, b printedSet) int { return strings.Compare(a.name, b.name) })
	written := 0
	for _, s := range sets {
		if s.name == "" {
			fmt.Fprintf(b, "      %s: %s\n", section, values(s.values))
			continue
		}
		if written++; written == 1 {
			fmt.Fprintf(b, "      %s:\n", section)
		} else if written > maxTable {
			return // exceeds the limits of a catalogue, not compared
		}
		fmt.Fprintf(b, "        %s: %s\n", quote(s.name), values(s.values))
	}
}

// name returns a short unique name made from the model.
func (g *group) name(names map[string]bool) string {
	text := cmp.Or(string(g.match.Model), string(g.match.PCIID))
	if vendor := string(g.match.Vendor); !strings.HasPrefix(strings.ToLower(text), strings.ToLower(vendor)) {
		text = vendor + " " + text
	}
	slug := strings.Join(strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9')
	}), "-")
	slug = cmp.Or(slug[:min(len(slug), maxText/2)], string(g.match.Class))
	name := slug
	for n := 2; names[name]; n++ {
		name = slug + "-" + strconv.Itoa(n)
	}
	names[name] = true
	return name
}

func values(list []string) string {
	quoted := make([]string, len(list))
	for i, v := range list {
		quoted[i] = quote(v)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// quote quotes printable text so that YAML reads it as a string.
func quote(s string) string { return strconv.Quote(s) }

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
