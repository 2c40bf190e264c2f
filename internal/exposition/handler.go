package exposition

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/klauspost/compress/gzip"
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
		// A ResponseWriter without deadlines, such as a test recorder, has no
		// stalled reader. net/http removes the deadline after the response.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(e.o.WriteTimeout))
	}
	a := e.agree(r)
	if a.format == formatOther || filtered(r) {
		e.slow.ServeHTTP(w, r)
		return
	}
	e.serve(w, a)
}

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
