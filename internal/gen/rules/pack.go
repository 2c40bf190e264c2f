package main

import (
	"fmt"
	"regexp"
	"slices"
)

// maxRules is the largest group that Mimir accepts by default.
const maxRules = 20

// chain is a list of rules that are evaluated in order in one group, because
// later ones read what earlier ones record.
type chain []templateRule

var seriesName = regexp.MustCompile(`[a-zA-Z_:][\w:]*`)

// joined joins the chains of which one reads what another records.
func joined(chains []chain) []chain {
	var out []chain
	for _, c := range chains {
		var rest []chain
		for _, o := range out {
			if o.reads(c) || c.reads(o) {
				c = append(slices.Clone(o), c...)
			} else {
				rest = append(rest, o)
			}
		}
		out = append(rest, c)
	}
	return out
}

// reads reports whether a rule of c mentions a record of o.
func (c chain) reads(o chain) bool {
	for _, r := range c {
		for _, name := range seriesName.FindAllString(r.Expr+" "+r.Device, -1) {
			if slices.ContainsFunc(o, func(r templateRule) bool { return r.Record == name }) {
				return true
			}
		}
	}
	return false
}

// packed distributes chains over as few lists of at most limit rules as it takes
// to put each into the first that has room.
func packed(chains []chain, limit int) ([][]templateRule, error) {
	var packs [][]templateRule
next:
	for _, c := range chains {
		if len(c) > limit {
			return nil, fmt.Errorf("%s to %s: %d rules depend on each other; a group has room for %d", c[0].Record+c[0].Alert, c[len(c)-1].Record+c[len(c)-1].Alert, len(c), limit)
		}
		for i := range packs {
			if len(packs[i])+len(c) <= limit {
				packs[i] = append(packs[i], c...)
				continue next
			}
		}
		packs = append(packs, slices.Clone(c))
	}
	return packs, nil
}
