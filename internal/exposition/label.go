package exposition

import (
	"slices"
	"strings"

	"github.com/prometheus/common/model"

	"github.com/accel-exporter/accel-exporter/collector"
)

// Label is a label of a series. On the page its value is valid UTF-8.
type Label struct{ Name, Value string }

// Origins of a label value other than the reading's own labels.
const (
	fromDevice = -1 - iota
	fromParent
)

// order is how the labels of one family are sorted by name.
type order struct {
	ok    bool
	scope collector.Scope
	own   int // number of the family's own labels
	// alone and child are the sorted labels of a whole device and of a
	// partition; on the node both are the family's own.
	alone, child []source
}

// source is a label name and the index of its value in Reading.Labels, or one
// of the from constants.
type source struct {
	name string
	from int
}

// orderOf returns the order of m. It is not ok where Prometheus does not accept
// the names.
func orderOf(m *collector.Metric) order {
	o := order{ok: validName(m.Name), scope: m.Scope, own: len(m.Labels)}
	for i, name := range m.Labels {
		o.ok = o.ok && validLabel(name)
		o.alone = append(o.alone, source{name, i})
	}
	o.child = slices.Clone(o.alone)
	if m.Scope == collector.PerDevice {
		o.alone = append(o.alone, source{"device", fromDevice})
		o.child = append(o.child, source{"device", fromDevice}, source{"parent", fromParent})
	}
	for _, s := range [][]source{o.alone, o.child} {
		slices.SortFunc(s, func(x, y source) int { return strings.Compare(x.name, y.name) })
		for i := range s {
			o.ok = o.ok && (i == 0 || s[i-1].name != s[i].name)
		}
	}
	return o
}

// labels returns the sorted labels of r, a reading of d or, if d is nil, of the
// node.
func (o *order) labels(d *collector.Device, r *collector.Reading) ([]Label, bool) {
	if !o.ok || len(r.Labels) != o.own || d == nil && o.scope == collector.PerDevice {
		return nil, false
	}
	sources := o.alone
	if d != nil && d.Parent != "" {
		sources = o.child
	}
	labels := make([]Label, len(sources))
	for i, s := range sources {
		v := ""
		switch s.from {
		case fromDevice:
			v = d.ID
		case fromParent:
			v = d.Parent
		default:
			v = r.Labels[s.from]
		}
		// Firmware returns bytes that are not UTF-8; they must not cost the
		// series.
		labels[i] = Label{s.name, strings.ToValidUTF8(v, "\uFFFD")}
	}
	return labels, true
}

// validName restricts names to the legacy charset, which no escaping scheme
// changes.
func validName(s string) bool { return model.LegacyValidation.IsValidMetricName(s) }

func validLabel(s string) bool {
	return model.LegacyValidation.IsValidLabelName(s) && !strings.HasPrefix(s, model.ReservedLabelPrefix)
}

// blocks are the distinct label blocks of a page, as they are written between
// the name of a family and the value:
//
//	{device="GPU-1",engine="compute"} (and one space)
type blocks struct {
	text []byte
	ends []int32
}

func (b *blocks) at(i int32) []byte {
	begin := int32(0)
	if i > 0 {
		begin = b.ends[i-1]
	}
	return b.text[begin:b.ends[i]]
}

func (b *blocks) len() int { return len(b.ends) }

// interner adds each distinct block once.
type interner struct {
	blocks  *blocks
	seen    map[string]int32
	scratch []byte
}

func newInterner(b *blocks) *interner { return &interner{blocks: b, seen: make(map[string]int32)} }

func (in *interner) block(labels []Label) int32 {
	in.scratch = appendBlock(in.scratch[:0], labels)
	if i, ok := in.seen[string(in.scratch)]; ok {
		return i
	}
	i := int32(len(in.blocks.ends))
	in.blocks.text = append(in.blocks.text, in.scratch...)
	in.blocks.ends = append(in.blocks.ends, int32(len(in.blocks.text)))
	in.seen[string(in.scratch)] = i
	return i
}

func appendBlock(b []byte, labels []Label) []byte {
	separator := byte('{')
	for _, l := range labels {
		b = append(b, separator)
		b = append(b, l.Name...)
		b = append(b, '=', '"')
		b = appendEscaped(b, l.Value, true)
		b = append(b, '"')
		separator = ','
	}
	if len(labels) > 0 {
		b = append(b, '}')
	}
	return append(b, ' ')
}

// appendEscaped escapes as the exposition formats require. Quotes are escaped
// in label values and in the HELP of OpenMetrics, not in the HELP of text.
func appendEscaped(b []byte, s string, quotes bool) []byte {
	for i := range len(s) {
		switch c := s[i]; {
		case c == '\\':
			b = append(b, '\\', '\\')
		case c == '\n':
			b = append(b, '\\', 'n')
		case c == '"' && quotes:
			b = append(b, '\\', '"')
		default:
			b = append(b, c)
		}
	}
	return b
}

// parseBlock is the inverse of appendBlock.
func parseBlock(block []byte) []Label {
	var labels []Label
	for s := string(block); len(s) > 1 && s[0] != '}'; {
		name, rest, _ := strings.Cut(s[1:], `="`)
		end := 0
		for rest[end] != '"' {
			if rest[end] == '\\' {
				end++
			}
			end++
		}
		labels = append(labels, Label{name, unescape.Replace(rest[:end])})
		s = rest[end+1:]
	}
	return labels
}

var unescape = strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\"`, `"`)
