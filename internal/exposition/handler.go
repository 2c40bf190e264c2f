package exposition

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
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
	switch a, only := e.agree(r), wanted(r); {
	case a.format != formatOther:
		e.serve(w, a, only)
	case only != nil:
		e.serve(w, a.asText(), only)
	default:
		e.again(w, a, r)
	}
	return true
}

// validity is how long a protobuf page is sent again while no Snapshot is newer.
const validity = time.Second

// sent is a page that promhttp has rendered.
type sent struct {
	at     time.Time
	header http.Header
	code   int
	body   []byte
}

// again writes a page by promhttp, which takes ten times as long as serve. The
// page is rendered once for all requests of a Snapshot.
func (e *Exporter) again(w *rendered, a *agreement, r *http.Request) {
	e.sending.Lock()
	defer e.sending.Unlock()
	if latest := e.latest(); e.sentOf != latest {
		e.sentOf, e.sent = latest, nil
	}
	key := fmt.Sprint(a.negotiated, a.gzip)
	page := e.sent[key]
	if page == nil || time.Since(page.at) >= validity {
		answer := rendered{ResponseWriter: headerOnly{}, body: new(bytes.Buffer)}
		page = &sent{at: time.Now()}
		e.slow.ServeHTTP(&answer, r)
		page.header, page.code, page.body = answer.Header(), answer.code, answer.body.Bytes()
		if e.sent == nil {
			e.sent = map[string]*sent{}
			time.AfterFunc(validity, e.forget)
		}
		e.sent[key] = page
	}
	maps.Copy(w.Header(), page.header)
	w.code = page.code
	w.Write(page.body)
}

// forget frees the pages that promhttp has rendered.
func (e *Exporter) forget() {
	e.sending.Lock()
	defer e.sending.Unlock()
	e.sentOf, e.sent = nil, nil
}

// headerOnly is a ResponseWriter of the header.
type headerOnly http.Header

func (h headerOnly) Header() http.Header       { return http.Header(h) }
func (headerOnly) Write(p []byte) (int, error) { return len(p), nil }
func (headerOnly) WriteHeader(int)             {}

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

// wanted returns the families that the client requests, nil for all.
func wanted(r *http.Request) map[string]bool {
	if r.URL == nil || r.URL.RawQuery == "" {
		return nil
	}
	var only map[string]bool
	for _, name := range r.URL.Query()["name[]"] {
		if only == nil {
			only = map[string]bool{}
		}
		only[name] = true
	}
	return only
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

// serve writes the page as text or OpenMetrics: all families, or those in only.
func (e *Exporter) serve(w http.ResponseWriter, a *agreement, only map[string]bool) {
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
	f.page.only = only
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
	format           format // formatOther for protobuf, which promhttp writes
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
	a.gzip = e.wantsGzip(r)
	switch a.negotiated.FormatType() {
	case expfmt.TypeTextPlain:
		a.format = formatText
	case expfmt.TypeOpenMetrics:
		a.format = formatOpenMetrics
	case expfmt.TypeProtoText, expfmt.TypeProtoCompact:
		a = a.asText() // they are for debugging and take a hundred times as long
	}
	e.agreed.Store(a)
	return a
}

// asText returns the agreement on text instead of protobuf.
func (a *agreement) asText() *agreement {
	text := *a
	text.format = formatText
	text.negotiated = expfmt.NewFormat(expfmt.TypeTextPlain).WithEscapingScheme(a.negotiated.ToEscapingScheme())
	return &text
}

// wantsGzip returns promhttp's choice between identity and gzip: what it does
// for a page without families.
func (e *Exporter) wantsGzip(r *http.Request) bool {
	answer := rendered{ResponseWriter: headerOnly{}, body: new(bytes.Buffer)}
	e.empty.ServeHTTP(&answer, r)
	return answer.Header().Get("Content-Encoding") == "gzip"
}
