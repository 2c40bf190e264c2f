package exposition

import (
	"bytes"
	"io"
	"strconv"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"github.com/accel-exporter/accel-exporter/collector"
)

// chunk is how many bytes are gathered before they are written.
const chunk = 64 << 10

// page writes one response.
type page struct {
	out    io.Writer
	err    error // of the first write that failed; nothing is written after it
	failed int   // families that expfmt could not encode
	buf    bytes.Buffer
}

// write writes the values of f in the given format, with own between the
// families of the layout by name. It returns the error of out.
func (p *page) write(f *frame, form format, negotiated expfmt.Format, own []*dto.MetricFamily) error {
	p.buf.Reset()
	p.err, p.failed = nil, 0
	heads := f.layout.heads(form)
	for i := range f.layout.families {
		fam := &f.layout.families[i]
		n := 0
		for n < len(own) && own[n].GetName() < fam.metric.Name {
			n++
		}
		p.foreign(own[:n], negotiated)
		own = own[n:]
		if p.series(f, fam, heads[i], form == formatOpenMetrics); p.err != nil {
			return p.err
		}
	}
	p.foreign(own, negotiated)
	if form == formatOpenMetrics {
		p.buf.WriteString("# EOF\n")
	}
	p.flush()
	return p.err
}

// series writes a family. A family without a series now has no head either.
func (p *page) series(f *frame, fam *family, head []byte, openMetrics bool) {
	for at := fam.begin; at < fam.end; at++ {
		if Absent(f.values[at]) {
			continue
		}
		p.buf.Write(head)
		head = nil
		p.buf.WriteString(fam.metric.Name)
		p.buf.Write(f.layout.blocks.at(f.layout.block[at]))
		p.buf.Write(appendNumber(p.buf.AvailableBuffer(), f.values[at], openMetrics))
		p.buf.WriteByte('\n')
		if p.buf.Len() >= chunk {
			p.flush()
		}
	}
}

// foreign writes families that are not part of the layout.
func (p *page) foreign(families []*dto.MetricFamily, negotiated expfmt.Format) {
	if len(families) == 0 {
		return
	}
	encoder := expfmt.NewEncoder(&p.buf, negotiated)
	for _, f := range families {
		if encoder.Encode(f) != nil {
			p.failed++
		}
	}
}

func (p *page) flush() {
	if p.err == nil {
		_, p.err = p.out.Write(p.buf.Bytes())
	}
	p.buf.Reset()
}

// format is a wire format that this package writes itself.
type format uint8

const (
	formatText        format = iota // text/plain, version 0.0.4
	formatOpenMetrics               // differs from text in heads and numbers only
	formats
	formatOther // promhttp writes it
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
