package exposition

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/prometheus/common/expfmt"
)

// ServeHTTP serves the page. A client that does not read its answer occupies a
// connection until WriteTimeout, but none of the slots in which pages are rendered.
func (e *Exporter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer := rendered{ResponseWriter: w, body: bodies.Get().(*bytes.Buffer)}
	defer bodies.Put(answer.body)
	answer.body.Reset()
	if !e.render(&answer, r) {
		http.Error(w, fmt.Sprintf("Limit of concurrent requests reached (%d), try again later.", cap(e.slots)), http.StatusServiceUnavailable)
		return
	}
	if e.o.WriteTimeout > 0 {
		// A ResponseWriter without deadlines, such as a test recorder, has no
		// stalled reader. net/http removes the deadline after the response.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(e.o.WriteTimeout))
	}
	w.Header().Set("Content-Length", strconv.Itoa(answer.body.Len()))
	if answer.code != 0 {
		w.WriteHeader(answer.code)
	}
	if _, err := w.Write(answer.body.Bytes()); err != nil {
		e.errs.WithLabelValues("encoding").Inc()
	}
}

// render renders the page in a slot, and returns false if none is free. promhttp
// answers requests for protobuf and for some families only (name[]).
func (e *Exporter) render(w *rendered, r *http.Request) bool {
	if e.slots != nil {
		select {
		case e.slots <- struct{}{}:
			defer func() { <-e.slots }()
		default:
			return false
		}
	}
	if a := e.agree(r); a.format == formatOther || r.URL.RawQuery != "" {
		e.slow.ServeHTTP(w, r)
	} else {
		e.serve(w, a)
	}
	return true
}

// rendered is an answer that is sent after it is complete.
type rendered struct {
	http.ResponseWriter
	body *bytes.Buffer
	code int
}

// bodies are buffers of rendered pages.
var bodies = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// Write implements http.ResponseWriter.
func (w *rendered) Write(p []byte) (int, error) { return w.body.Write(p) }

// WriteHeader implements http.ResponseWriter.
func (w *rendered) WriteHeader(code int) { w.code = code }

// gzips are compressors at rest. BestSpeed: a page is short-lived and names
// repeat, so that the default level saves a quarter of the bytes for three
// times the CPU.
var gzips = sync.Pool{New: func() any {
	z, err := gzip.NewWriterLevel(io.Discard, gzip.BestSpeed)
	if err != nil {
		panic(err) // the level is valid
	}
	return z
}}

// serve writes the page as text or OpenMetrics.
func (e *Exporter) serve(w http.ResponseWriter, a *agreement) {
	f := newFrame()
	defer f.release()
	e.snapshot(f)
	own, err := e.beside(f)
	if err != nil {
		e.errs.WithLabelValues("gathering").Inc()
	}

	h := w.Header()
	h.Add("Vary", "Accept")
	h.Add("Vary", "Accept-Encoding")
	h.Set("Content-Type", string(a.negotiated))
	f.page.out = w
	var z *gzip.Writer
	if a.gzip {
		h.Set("Content-Encoding", "gzip")
		z = gzips.Get().(*gzip.Writer)
		z.Reset(w)
		f.page.out = z
	}
	err = f.page.write(f, a.format, a.negotiated, own)
	if z != nil {
		err = errors.Join(err, z.Close())
		z.Reset(io.Discard)
		gzips.Put(z)
	}
	failed := f.page.failed
	if err != nil {
		failed++
	}
	e.errs.WithLabelValues("encoding").Add(float64(failed))
}

// agreement is the result of content negotiation. A scraper sends the same
// headers each time, so the last agreement is kept.
type agreement struct {
	accept, encoding string
	format           format
	negotiated       expfmt.Format
	gzip             bool
}

func (e *Exporter) agree(r *http.Request) *agreement {
	accept, encoding := r.Header.Get("Accept"), strings.Join(r.Header["Accept-Encoding"], ",")
	if a := e.agreed.Load(); a != nil && a.accept == accept && a.encoding == encoding {
		return a
	}
	a := &agreement{accept: accept, encoding: encoding, format: formatOther, gzip: acceptsGzip(encoding)}
	a.negotiated = expfmt.NegotiateAccept(r.Header, expfmt.DefaultOpenMetricsAcceptedFormats()...)
	switch a.negotiated.FormatType() {
	case expfmt.TypeTextPlain:
		a.format = formatText
	case expfmt.TypeOpenMetrics:
		a.format = formatOpenMetrics
	}
	e.agreed.Store(a)
	return a
}

// acceptsGzip reports whether a list of encodings has gzip, and not with the weight 0.
func acceptsGzip(encodings string) bool {
	for part := range strings.SplitSeq(encodings, ",") {
		name, weight, weighted := strings.Cut(strings.ReplaceAll(part, " ", ""), ";q=")
		if name != "gzip" {
			continue
		}
		q, err := strconv.ParseFloat(weight, 64)
		return !weighted || err == nil && q > 0
	}
	return false
}
