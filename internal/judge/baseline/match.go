package baseline

import "strings"

// answer is the result of a criterion for a device.
type answer uint8

const (
	no answer = iota
	undecided
	yes
)

// entryFor returns the first matching entry, nil if none matches. An unknown
// property neither matches nor fails. While an entry may still match, no later
// entry applies: a device must not be compared with the approval of another
// class until its properties are known.
func (c *Catalogue) entryFor(v *view, labels map[string]string) *Entry {
	if c == nil {
		return nil
	}
	for i := range c.Entries {
		switch c.Entries[i].Match.of(v, labels) {
		case yes:
			return &c.Entries[i]
		case undecided:
			return nil
		}
	}
	return nil
}

func (m *Match) of(v *view, labels map[string]string) answer {
	for name, p := range m.Labels {
		if value, given := labels[name]; !given || !p.matches(value) {
			return no
		}
	}
	return min(
		known(Pattern(m.Class), string(v.class)),
		known(m.Vendor, v.vendor),
		known(m.Model, v.model),
		known(Pattern(m.PCIID), v.pciID),
	)
}

// known returns the answer for one property, which is empty if unknown.
func known(p Pattern, value string) answer {
	switch {
	case p == "" || value != "" && p.matches(value):
		return yes
	case value == "":
		return undecided
	}
	return no
}

// covers reports whether m matches everything that o matches, judged by the
// patterns alone.
func (m *Match) covers(o *Match) bool {
	for name, p := range m.Labels {
		if q, given := o.Labels[name]; !given || !p.matches(string(q)) {
			return false
		}
	}
	wider := func(p, q Pattern) bool { return p == "" || q != "" && p.matches(string(q)) }
	return wider(Pattern(m.Class), Pattern(o.Class)) && wider(m.Vendor, o.Vendor) &&
		wider(m.Model, o.Model) && wider(Pattern(m.PCIID), Pattern(o.PCIID))
}

// set returns the approved values of a component, nil if it is not compared.
func (a *Approved) set(section, name string) []Pattern {
	switch section {
	case sectionDriver:
		return a.Driver
	case sectionCUDA:
		return a.CUDA
	case sectionModule:
		return a.Module
	case sectionFirmware:
		return a.Firmware[name]
	case sectionRootKey:
		return a.RootKey[name]
	case sectionBitstream:
		if set, ok := a.Bitstream[name]; ok {
			return set
		}
		return a.Bitstream[name[strings.LastIndexByte(name, '/')+1:]]
	}
	return nil
}
