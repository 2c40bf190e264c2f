package exposition

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/accel-exporter/accel-exporter/collector"
)

// format is a wire format that this package writes itself.
type format uint8

const (
	formatText        format = iota // text/plain, version 0.0.4
	formatOpenMetrics               // differs from text in heads and numbers only
	formats
	formatOther // promhttp answers
)

// heads returns the comment blocks of the families in a format. They are made
// on the first scrape in that format.
func (l *layout) heads(f format) [][]byte {
	h := &l.headsOf[f]
	h.once.Do(func() {
		h.heads = make([][]byte, len(l.families))
		for i, fam := range l.families {
			h.heads[i] = appendHead(nil, fam.metric, f == formatOpenMetrics)
		}
	})
	return h.heads
}

func help(m *collector.Metric) string { return strings.ToValidUTF8(m.Help, "\uFFFD") }

// appendHead appends the HELP and TYPE lines of a family.
func appendHead(b []byte, m *collector.Metric, openMetrics bool) []byte {
	name, kind := m.Name, m.Kind.Type()
	if openMetrics && kind == "counter" {
		// OpenMetrics names a counter without the suffix _total, and does
		// not accept a counter that lacks it.
		var ok bool
		if name, ok = strings.CutSuffix(name, "_total"); !ok {
			kind = "unknown"
		}
	}
	b = append(b, "# HELP "...)
	b = append(b, name...)
	b = append(b, ' ')
	b = appendEscaped(b, help(m), openMetrics)
	b = append(b, "\n# TYPE "...)
	b = append(b, name...)
	b = append(b, ' ')
	b = append(b, kind...)
	return append(b, '\n')
}

// appendNumber appends v as expfmt writes it: the shortest 'g' form, no sign
// on zero, and in OpenMetrics ".0" after what would read as an integer.
func appendNumber(b []byte, v float64, openMetrics bool) []byte {
	if v == 0 {
		v = 0
	}
	begin := len(b)
	b = strconv.AppendFloat(b, v, 'g', -1, 64)
	if openMetrics && !bytes.ContainsAny(b[begin:], ".eIN") {
		b = append(b, ".0"...)
	}
	return b
}
