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

// render renders the page in a slot, and returns false if none is free.
func (e *Exporter) render(w *rendered, r *http.Request) bool {
	if e.slots != nil {
		select {
		case e.slots <- struct{}{}:
			defer func() { <-e.slots }()
		default:
			return false
		}
	}
	if a := e.agree(r); a.format != formatOther && !filtered(r) {
		e.serve(w, a)
	} else {
		e.slow.ServeHTTP(w, r)
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

// filtered reports whether the client requests some families only.
func filtered(r *http.Request) bool {
	return r.URL != nil && r.URL.RawQuery != "" && len(r.URL.Query()["name[]"]) > 0
}

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
	format           format // formatOther where promhttp must answer
	negotiated       expfmt.Format
	gzip             bool
}

func (e *Exporter) agree(r *http.Request) *agreement {
	accept := r.Header.Get("Accept")
	var encoding string
	switch fields := r.Header["Accept-Encoding"]; len(fields) {
	case 0:
	case 1:
		encoding = fields[0]
	default:
		encoding = strings.Join(fields, ",")
	}
	if a := e.agreed.Load(); a != nil && a.accept == accept && a.encoding == encoding {
		return a
	}
	a := &agreement{accept: accept, encoding: encoding, format: formatOther}
	a.negotiated = expfmt.NegotiateAccept(r.Header, expfmt.DefaultOpenMetricsAcceptedFormats()...)
	gzip, ok := wantsGzip(encoding)
	a.gzip = gzip
	if ok {
		switch a.negotiated.FormatType() {
		case expfmt.TypeTextPlain:
			a.format = formatText
		case expfmt.TypeOpenMetrics:
			a.format = formatOpenMetrics
		}
	}
	e.agreed.Store(a)
	return a
}

// wantsGzip chooses between identity and gzip as promhttp does: the highest
// quality wins, identity among equals. It is not ok where the header is not a
// plain list or excludes both; promhttp answers then.
func wantsGzip(header string) (gzip, ok bool) {
	if header == "" {
		return false, true
	}
	identity, zipped := -1.0, -1.0
	for item := range strings.SplitSeq(header, ",") {
		name, parameter, weighted := strings.Cut(item, ";")
		name = strings.TrimSpace(name)
		q := 1.0
		if weighted {
			if q, ok = quality(strings.TrimSpace(parameter)); !ok {
				return false, false
			}
		}
		switch {
		case !isToken(name):
			return false, false
		case name == "*":
			identity, zipped = max(identity, q), max(zipped, q)
		case name == "identity":
			identity = max(identity, q)
		case name == "gzip":
			zipped = max(zipped, q)
		}
	}
	return zipped > identity, max(identity, zipped) != 0
}

// quality parses "q=" and a number from 0 to 1 without sign or exponent.
func quality(s string) (float64, bool) {
	number, ok := strings.CutPrefix(s, "q=")
	if !ok || strings.Trim(number, "0123456789.") != "" {
		return 0, false
	}
	q, err := strconv.ParseFloat(number, 64)
	return q, err == nil && q <= 1 && number[0] != '.'
}

func isToken(s string) bool {
	return s == "*" || s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}
