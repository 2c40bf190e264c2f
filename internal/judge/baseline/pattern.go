package baseline

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/accel-exporter/accel-exporter/internal/config/strict/wording"
)

// maxText bounds a text of the catalogue, in bytes.
const maxText = 200

// Pattern is a text in which * matches any sequence of characters, including
// none.
type Pattern string

// UnmarshalText accepts a printable text of at most 200 bytes.
func (p *Pattern) UnmarshalText(b []byte) error {
	*p = Pattern(b)
	return checkText(string(b))
}

// checkText rejects texts that are unreadable on a page or in a message.
func checkText(s string) error {
	switch {
	case s == "":
		return fmt.Errorf("found an empty text; accepted are 1 to %d bytes", maxText)
	case len(s) > maxText:
		return fmt.Errorf("found a text of %d bytes; accepted are 1 to %d", len(s), maxText)
	case !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }):
		return fmt.Errorf("found %s; accepted are printable characters", wording.Quote(s))
	}
	return nil
}

// matches reports whether p matches the whole of s.
func (p Pattern) matches(s string) bool {
	head, rest, wild := strings.Cut(string(p), "*")
	if !wild {
		return string(p) == s
	}
	s, ok := strings.CutPrefix(s, head)
	for ok {
		part, next, more := strings.Cut(rest, "*")
		if !more {
			return strings.HasSuffix(s, part)
		}
		_, s, ok = strings.Cut(s, part)
		rest = next
	}
	return false
}

// PCIID is a PCI vendor and device id: 10de:2330.
type PCIID string

// lazily compiles a pattern on first use: most nodes have no baseline, and
// workers never do.
func lazily(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}

var pciID = lazily(`^[0-9a-f]{4}:[0-9a-f]{4}$`)

// UnmarshalText accepts two numbers of four lower-case hexadecimal digits.
func (p *PCIID) UnmarshalText(b []byte) error {
	if !pciID().Match(b) {
		return fmt.Errorf("found %s; accepted is vendor:device in lower-case hexadecimal, such as 10de:2330", wording.Quote(string(b)))
	}
	*p = PCIID(b)
	return nil
}

// Layout is how a GPU is partitioned: disabled, empty (MIG mode without an
// instance), or the MIG devices by profile, as in "1x3g.40gb 2x2g.20gb".
type Layout string

// The layouts without an instance.
const (
	layoutDisabled Layout = "disabled"
	layoutEmpty    Layout = "empty"
)

var profileCount = lazily(`^([1-9][0-9]?)x((?:[1-9]c\.)?[1-9]g\.[1-9][0-9]{0,3}gb(?:[.+-][a-z]{1,10}){0,3})$`)

// UnmarshalText accepts a layout with the profiles in any order.
func (l *Layout) UnmarshalText(b []byte) error {
	text := string(b)
	if *l = Layout(text); *l == layoutDisabled || *l == layoutEmpty {
		return nil
	}
	counts := map[string]int{}
	for part := range strings.FieldsSeq(text) {
		m := profileCount().FindStringSubmatch(part)
		if m == nil || counts[m[2]] > 0 {
			counts = nil
			break
		}
		counts[m[2]], _ = strconv.Atoi(m[1])
	}
	if len(counts) == 0 {
		return fmt.Errorf("found %s; accepted is disabled, empty, or each profile once with its count, such as \"1x3g.40gb 2x2g.20gb\"", wording.Quote(text))
	}
	*l = layoutOf(counts)
	return nil
}

// layoutOf returns the counts of MIG devices by profile in a fixed order.
func layoutOf(counts map[string]int) Layout {
	parts := make([]string, 0, len(counts))
	for profile, n := range counts {
		parts = append(parts, strconv.Itoa(n)+"x"+profile)
	}
	slices.SortFunc(parts, func(a, b string) int {
		_, pa, _ := strings.Cut(a, "x")
		_, pb, _ := strings.Cut(b, "x")
		return strings.Compare(pa, pb)
	})
	return Layout(strings.Join(parts, " "))
}

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
		known(Pattern(m.Class), string(v.Class)),
		known(m.Vendor, v.Vendor),
		known(m.Model, v.Model),
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
