package exposition

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/common/expfmt"
)

// ServeHTTP serves the page.
func (e *Exporter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if e.slots != nil {
		select {
		case e.slots <- struct{}{}:
			defer func() { <-e.slots }()
		default:
			http.Error(w, fmt.Sprintf("Limit of concurrent requests reached (%d), try again later.", cap(e.slots)), http.StatusServiceUnavailable)
			return
		}
	}
	if e.o.WriteTimeout > 0 {
		// A ResponseWriter that has no deadline, such as a recorder, has no
		// stalled reader either. net/http lifts it after the response.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(e.o.WriteTimeout))
	}
	a := e.agree(r)
	if a.format == formatOther || filtered(r) {
		e.slow.ServeHTTP(w, r)
		return
	}
	e.serve(w, a)
}

// filtered reports whether the client wants only some families.
func filtered(r *http.Request) bool {
	return r.URL != nil && r.URL.RawQuery != "" && len(r.URL.Query()["name[]"]) > 0
}

// WriteText writes the page in the text format, for a reader on this node
// that is no scrape. The error says what could not be gathered, in which case
// the rest is written, or that w failed.
func (e *Exporter) WriteText(w io.Writer) error {
	f := e.frame()
	defer e.release(f)
	e.snapshot(f)
	own, gathered := e.beside(f)
	f.page.out = w
	err := f.page.write(f, f.layout.dress(formatText), expfmt.NewFormat(expfmt.TypeTextPlain), own)
	if f.page.failed > 0 {
		err = errors.Join(err, fmt.Errorf("%d families cannot be written as text", f.page.failed))
	}
	e.tidy(f.layout)
	return errors.Join(gathered, err)
}

var (
	vary         = []string{"Accept", "Accept-Encoding"}
	gzipEncoding = []string{"gzip"}
)

// serve is the fast face. Everything it works in is its own until it is done,
// so that it can stall at any Write without anyone noticing.
func (e *Exporter) serve(w http.ResponseWriter, a *agreement) {
	f := e.frame()
	defer e.release(f)
	e.snapshot(f)
	l := f.layout
	own, err := e.beside(f)
	if err != nil {
		e.errs.WithLabelValues("gathering").Inc()
	}

	h := w.Header()
	h["Vary"] = append(h["Vary"], vary...)
	h["Content-Type"] = a.contentType
	p := &f.page
	p.out = w
	// Known sizes spare net/http the chunks, each of which costs it a write,
	// and the client another wakeup.
	p.whole = func(size int) { h["Content-Length"] = []string{strconv.Itoa(size)} }
	d := l.dress(a.format)
	if a.gzip {
		h["Content-Encoding"] = gzipEncoding
		f.deflate.begin(w, p.whole, d.compressor(f, a.negotiated, own), l.series)
		p.gz = &f.deflate
	}
	err = p.write(f, d, a.negotiated, own)
	if a.gzip && err == nil {
		err = f.deflate.end()
	}
	if err != nil {
		p.failed++
	}
	if p.failed > 0 {
		e.errs.WithLabelValues("encoding").Add(float64(p.failed))
	}
	l.dropTree()
	e.tidy(l)
}
