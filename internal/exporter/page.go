package exporter

import (
	"bytes"
	"encoding/binary"
	"io"
	"math"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
)

const (
	chunk   = 64 << 10  // bytes gathered before they are written
	tooMuch = 256 << 10 // buffers that grew beyond are not kept
)

// page writes one response: pieces and values in turn, and between them the
// process's own families. A text piece begins with the newline that ends the
// line before.
type page struct {
	out    io.Writer
	err    error // why writing was given up
	failed int   // families that expfmt could not encode
	buf    []byte
	before int // bytes of the page that have left buf
	own    bytes.Buffer
	// At most one of the following sees all that is written.
	gz     *deflate  // compresses it
	record *recorder // learns how to compress it
}

// write writes the values of f in the given format, with own between its
// families by name. It gives up when the client is gone.
func (p *page) write(f *frame, d *dressing, negotiated expfmt.Format, own []*dto.MetricFamily) error {
	p.buf, p.before, p.err, p.failed = p.buf[:0], 0, nil, 0
	for i := range f.layout.families {
		name := f.layout.families[i].metric.Name
		n := 0
		for n < len(own) && own[n].GetName() < name {
			n++
		}
		p.foreign(own[:n], d.format, negotiated)
		own = own[n:]
		if p.family(f, d, i); p.err != nil {
			return p.err
		}
	}
	p.foreign(own, d.format, negotiated)
	switch d.format {
	case formatText:
		p.literal([]byte("\n"))
	case formatOpenMetrics:
		p.literal([]byte("\n# EOF\n"))
	}
	p.flush()
	return p.err
}

func (p *page) family(f *frame, d *dressing, i int) {
	fam, l := &f.layout.families[i], f.layout
	dress := &d.families[i]
	prefix := dress.first
	for at := fam.begin; at < fam.end; at++ {
		if len(p.buf) >= chunk {
			if p.flush(); p.err != nil {
				return
			}
		}
		begin := len(p.buf)
		buf := append(append(p.buf, prefix...), d.blocks.at(l.block[at])...)
		prefix = dress.next
		var value int
		if d.format == formatProto {
			buf = append(buf, dress.tail...)
			value = len(buf)
			buf = binary.LittleEndian.AppendUint64(buf, math.Float64bits(f.values[at]))
		} else {
			value = len(buf)
			buf = appendNumber(buf, f.values[at], d.format == formatOpenMetrics)
		}
		p.buf = buf
		switch {
		case p.gz != nil:
			p.gz.line(at, p.before+begin, buf[begin:value], buf[value:])
		case p.record != nil:
			p.record.line(p.before+begin, buf[begin:value], buf[value:])
		}
	}
}

// foreign writes families that are not of the layout, by way of expfmt. In
// text their last newline is left to what follows, as after any value.
func (p *page) foreign(families []*dto.MetricFamily, form format, negotiated expfmt.Format) {
	if len(families) == 0 {
		return
	}
	p.own.Reset()
	first := p.before+len(p.buf) == 0
	if form != formatProto && !first {
		p.own.WriteByte('\n')
	}
	encoder := expfmt.NewEncoder(&p.own, negotiated)
	for _, f := range families {
		if encoder.Encode(f) != nil {
			p.failed++
		}
	}
	b := p.own.Bytes()
	if form != formatProto && !first {
		b = bytes.TrimSuffix(b, []byte("\n"))
	}
	p.literal(b)
}

// literal writes bytes that no template knows.
func (p *page) literal(b []byte) {
	if len(p.buf)+len(b) > 2*chunk {
		p.flush()
	}
	switch {
	case p.gz != nil:
		p.gz.foreign(b)
	case p.record != nil:
		p.record.foreign(p.before+len(p.buf), b)
	}
	p.buf = append(p.buf, b...)
}

// flush sends what has been gathered on its way.
func (p *page) flush() {
	p.before += len(p.buf)
	switch {
	case p.gz != nil:
		p.gz.sum(p.buf)
		p.err = p.gz.err
	case p.err == nil && len(p.buf) > 0:
		_, p.err = p.out.Write(p.buf)
	}
	p.buf = p.buf[:0]
	if cap(p.buf) > tooMuch {
		p.buf = nil
	}
}
