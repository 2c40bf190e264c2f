package baseline

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/accel-exporter/accel-exporter/collector"
)

// comparison is one component of one device.
type comparison struct {
	component string
	expected  string
	actual    string
	drift     bool
}

// compare compares facts with the approved values. A component with several
// values has drifted if one value is not approved.
func compare(facts []fact, a *Approved) []comparison {
	var out []comparison
	for i := range facts {
		f := &facts[i]
		expected, ok, compared := f.judged(a)
		if !compared {
			continue
		}
		c := comparison{component: f.component(), expected: expected, actual: f.value, drift: !ok}
		at := slices.IndexFunc(out, func(o comparison) bool { return o.component == c.component })
		switch {
		case at < 0:
			out = append(out, c)
		case c.drift:
			out[at] = c
		}
	}
	return out
}

// judged returns the approved set as a text, whether the value of f is in it,
// and whether f is compared at all.
func (f *fact) judged(a *Approved) (expected string, ok, compared bool) {
	if f.section == sectionMIG {
		return list(a.MIG), slices.Contains(a.MIG, Layout(f.value)), a.MIG != nil
	}
	set := a.set(f.section, f.name)
	ok = slices.ContainsFunc(set, func(p Pattern) bool {
		if f.section == sectionBitstream {
			return Pattern(plainID(string(p))).matches(plainID(f.value))
		}
		return p.matches(f.value)
	})
	return list(set), ok, len(set) > 0
}

// plainID normalizes the id of a bitstream: lower case, without the dashes of a
// UUID.
func plainID(id string) string {
	id = strings.ToLower(id)
	if len(id) == 36 && id[8] == '-' && id[13] == '-' && id[18] == '-' && id[23] == '-' {
		return strings.ReplaceAll(id, "-", "")
	}
	return id
}

// Labels are short enough for a page and a message.
const maxLabel = 200

// list joins values for a label.
func list[S ~string](values []S) string {
	var b strings.Builder
	for i, v := range values {
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		if b.Len()+len(v) > maxLabel && i > 0 {
			b.WriteString("…")
			break
		}
		b.WriteString(string(v))
	}
	return b.String()
}

// brief truncates a value that a device reports.
func brief(s string) string {
	if len(s) > maxLabel {
		n := maxLabel
		for n > 0 && !utf8.RuneStart(s[n]) {
			n--
		}
		s = s[:n] + "…"
	}
	return strings.ToValidUTF8(s, "?")
}

func (c *comparison) reading() collector.Reading {
	r := collector.Reading{Metric: collector.Drift, Labels: []string{brief(c.component), brief(c.expected), brief(c.actual)}}
	if c.drift {
		r.Value = 1
	}
	return r
}
