package exposition

import (
	"bytes"
	"io"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
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
		p.buf.Write(heads[i])
		if p.series(f, fam, form == formatOpenMetrics); p.err != nil {
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

func (p *page) series(f *frame, fam *family, openMetrics bool) {
	for at := fam.begin; at < fam.end; at++ {
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
