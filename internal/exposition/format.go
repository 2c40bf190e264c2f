package exposition

import (
	"io"
	"strings"
	"sync"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"github.com/accel-exporter/accel-exporter/collector"
)

// format is a wire format that the fast face writes.
type format uint8

const (
	formatText        format = iota // text/plain, version 0.0.4
	formatOpenMetrics               // its versions differ from text in heads and numbers only
	formatProto                     // delimited protobuf
	formats
	formatOther // promhttp's business
)

// dressing is what a layout needs to be written in one format. It is made on
// the first scrape in that format.
type dressing struct {
	format   format
	once     sync.Once
	families []familyDressing
	blocks   *blocks

	templateOnce sync.Once
	template     *template
}

// familyDressing is what surrounds the label blocks of a family.
type familyDressing struct {
	first []byte // before the label block of the first series
	next  []byte // before that of any other
	tail  []byte // between a label block and the value
}

func (l *layout) dress(f format) *dressing {
	d := &l.dressings[f]
	d.once.Do(func() {
		d.format = f
		d.blocks = &l.blocks
		if f == formatProto {
			d.blocks = protoBlocks(&l.blocks)
		}
		d.families = make([]familyDressing, len(l.families))
		for i, fam := range l.families {
			if f == formatProto {
				d.families[i] = familyDressing{first: protoHead(fam, l, d.blocks), tail: protoTail(fam.metric)}
				continue
			}
			// Values end without a newline, so that the next piece begins
			// with it and a template knows it.
			first := append([]byte("\n"), textHead(fam.metric, f == formatOpenMetrics)...)
			if i == 0 {
				first = first[1:]
			}
			d.families[i] = familyDressing{first: append(first, fam.metric.Name...), next: []byte("\n" + fam.metric.Name)}
		}
	})
	return d
}

// compressor returns the template for d, made on the first compressed scrape
// from the page that f would write.
func (d *dressing) compressor(f *frame, negotiated expfmt.Format, own []*dto.MetricFamily) *template {
	d.templateOnce.Do(func() {
		p := page{out: io.Discard, record: new(recorder)}
		// Nothing is sent, so that nothing can fail.
		_ = p.write(f, d, negotiated, own)
		d.template = p.record.template()
	})
	return d.template
}

func help(m *collector.Metric) string { return strings.ToValidUTF8(m.Help, "\uFFFD") }

// textHead is the comment block of a family, ending with its last newline.
func textHead(m *collector.Metric, openMetrics bool) []byte {
	name, kind := m.Name, m.Kind.Type()
	if openMetrics && kind == "counter" {
		// OpenMetrics knows a counter by its name without the suffix, and
		// one without the suffix not at all.
		var ok bool
		if name, ok = strings.CutSuffix(name, "_total"); !ok {
			kind = "unknown"
		}
	}
	b := append([]byte("# HELP "), name...)
	b = append(b, ' ')
	b = appendEscaped(b, help(m), openMetrics)
	b = append(b, "\n# TYPE "...)
	b = append(b, name...)
	b = append(b, ' ')
	b = append(b, kind...)
	return append(b, '\n')
}
