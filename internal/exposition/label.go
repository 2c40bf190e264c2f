package exposition

import (
	"slices"
	"strings"

	"github.com/prometheus/common/model"

	"github.com/accel-exporter/accel-exporter/collector"
)

// Label is a label of a series. On the page its value is valid UTF-8.
type Label struct{ Name, Value string }

// labelsOf returns the sorted labels of r, a reading of d or, if d is nil, of the node,
// and false where they do not fit the family.
func labelsOf(d *collector.Device, r *collector.Reading) ([]Label, bool) {
	m := r.Metric
	if len(r.Labels) != len(m.Labels) || d == nil && m.Scope == collector.PerDevice {
		return nil, false
	}
	labels := make([]Label, 0, len(m.Labels)+2)
	for i, name := range m.Labels {
		labels = append(labels, Label{name, r.Labels[i]})
	}
	if m.Scope == collector.PerDevice {
		labels = append(labels, Label{"device", d.ID})
		if d.Parent != "" {
			labels = append(labels, Label{"parent", d.Parent})
		}
	}
	return labels, sortLabels(labels)
}

// sortLabels sorts labels by name and makes their values valid. It returns false where
// Prometheus does not accept the names.
func sortLabels(labels []Label) bool {
	slices.SortFunc(labels, func(x, y Label) int { return strings.Compare(x.Name, y.Name) })
	for i := range labels {
		if !validLabel(labels[i].Name) || i > 0 && labels[i-1].Name == labels[i].Name {
			return false
		}
		// Firmware returns bytes that are not UTF-8; they must not cost the
		// series.
		labels[i].Value = strings.ToValidUTF8(labels[i].Value, "\uFFFD")
	}
	return true
}

// validName restricts names to the legacy charset, which no escaping scheme
// changes.
func validName(s string) bool { return model.LegacyValidation.IsValidMetricName(s) }

func validLabel(s string) bool {
	return model.LegacyValidation.IsValidLabelName(s) && !strings.HasPrefix(s, model.ReservedLabelPrefix)
}

// blocks are the distinct sets of labels of a page, each with the text between the name
// of a family and the value:
//
//	{device="GPU-1",engine="compute"} (and one space)
type blocks struct {
	labels [][]Label
	text   []byte
	ends   []int32
}

func (b *blocks) at(i int32) []byte {
	begin := int32(0)
	if i > 0 {
		begin = b.ends[i-1]
	}
	return b.text[begin:b.ends[i]]
}

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
	in.blocks.labels = append(in.blocks.labels, labels)
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
