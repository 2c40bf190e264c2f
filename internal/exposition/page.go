package exposition

import (
	"bytes"
	"encoding/binary"
	"io"
	"math"
	"slices"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
)

const (
	chunk   = 128 << 10 // bytes gathered before they are written
	tooMuch = 256 << 10 // buffers that grew beyond are not kept
)

// page writes one response: pieces and values in turn, and between them the
// process's own families. A text piece begins with the newline that ends the
// line before.
type page struct {
	out    io.Writer
	whole  func(size int) // told before all is written at once, where not nil
	err    error          // why writing was given up
	failed int            // families that expfmt could not encode
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
	if p.before == 0 && p.gz == nil && p.whole != nil {
		p.whole(len(p.buf))
	}
	p.flush()
	return p.err
}

func (p *page) family(f *frame, d *dressing, i int) {
	fam, dress := &f.layout.families[i], &d.families[i]
	prefix := dress.first
	values, blocks := f.values[fam.begin:fam.end], f.layout.block[fam.begin:fam.end]
	for j, v := range values {
		if len(p.buf) >= chunk {
			if p.flush(); p.err != nil {
				return
			}
		}
		block := d.blocks.at(blocks[j])
		begin := len(p.buf)
		value := begin + len(prefix) + len(block) + len(dress.tail)
		if cap(p.buf) < value+slack {
			p.buf = slices.Grow(p.buf, value-begin+slack)
		}
		w := p.buf[:cap(p.buf)]
		n := begin + copy(w[begin:], prefix)
		n += copy(w[n:], block)
		prefix = dress.next
		if d.format == formatProto {
			n += copy(w[n:], dress.tail)
			binary.LittleEndian.PutUint64(w[n:], math.Float64bits(v))
			n += 8
		} else {
			n = writeNumber(w, n, v, d.format == formatOpenMetrics)
		}
		p.buf = w[:n]
		switch {
		case p.gz != nil:
			p.gz.line(fam.begin+j, p.before+begin, w[begin:value], w[value:n])
		case p.record != nil:
			p.record.line(p.before+begin, w[begin:value], w[value:n])
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
	if len(p.buf)+len(b) > tooMuch {
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
