package status

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"html/template"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/klauspost/compress/gzhttp"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/judge/allocation"
	"github.com/accel-exporter/accel-exporter/internal/status/history"
	"github.com/accel-exporter/accel-exporter/podmap"
	"github.com/accel-exporter/accel-exporter/podmap/kube"
)

// Options are the inputs of a Page. None of the functions may block.
type Options struct {
	// Node is the name of the node, Version that of the exporter.
	Node, Version string
	Snapshot      func() *collector.Snapshot
	// History has the readings of the last ten minutes; nil for no history.
	History *history.Ring
	// Allocations returns the report, and the states of kubelet and API server: nil
	// where they are not configured.
	Allocations func() (*allocation.Report, *podmap.Status, *kube.Status)
	// Explain returns what is missing where the driver refuses a call, and what permits it.
	Explain func(call string) (lost, remedy string)
	// Remarks are the exporter's about itself, and AsksFor reports whether a flag or the
	// node asks for a source.
	Remarks func() []Remark
	AsksFor func(source string) bool
	// Alerts returns nil if no rules are evaluated.
	Alerts func() *Alerts
	// Bundles returns the bundles of evidence, which are shown to whom Permits permits.
	Bundles func() []Bundle
	Permits func(*http.Request) bool
	Log     *slog.Logger
}

// Limits of the page: of answers that are being sent, and of the time to render and send
// one.
const (
	maxAnswers = 16
	patience   = 30 * time.Second
)

// Page serves the status page.
type Page struct {
	o       Options
	sending atomic.Int32
}

// request is what a viewer wants: the page of a device, or of the node if it is
// empty, or the View of it as JSON.
type request struct {
	device  string
	json    bool
	bundles bool // the viewer may have them
}

// New returns a Page.
func New(o Options) *Page {
	if o.Explain == nil {
		o.Explain = func(string) (string, string) { return "", "" }
	}
	if o.Remarks == nil {
		o.Remarks = func() []Remark { return nil }
	}
	if o.AsksFor == nil {
		o.AsksFor = func(string) bool { return false }
	}
	if o.History == nil {
		o.History = &history.Ring{}
	}
	return &Page{o: o}
}

//go:embed page.html
var source string

//go:embed status.css status.js status.svg
var files embed.FS

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"clock": func(t time.Time) string { return t.UTC().Format("15:04:05") },
	"date":  func(t time.Time) string { return t.UTC().Format(time.DateTime) },
	"stamp": func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
	"docs":  func(path string) string { return Docs + path },
}).Parse(source))

// policy permits the page its own style sheet, script and picture, and requests to
// itself.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

func secure(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-cache")
}

// Register adds the page, that of a device, and their files.
func (p *Page) Register(mux *http.ServeMux) {
	mux.Handle("GET /{$}", p.handler(func(*http.Request) request { return request{} }))
	of := p.handler(func(r *http.Request) request { return request{device: r.URL.Query().Get("id")} })
	mux.HandleFunc("GET "+DevicePath, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("id") == "" {
			http.Error(w, "id is missing; "+DevicePath+"?id=ID is accepted", http.StatusBadRequest)
			return
		}
		of.ServeHTTP(w, r)
	})
	entries, err := files.ReadDir(".")
	if err != nil {
		panic(err) // part of this build
	}
	for _, e := range entries {
		data, _ := files.ReadFile(e.Name())
		tag := etag(data)
		mux.HandleFunc("GET /-/"+e.Name(), func(w http.ResponseWriter, r *http.Request) {
			secure(w.Header())
			w.Header().Set("ETag", tag)
			http.ServeContent(w, r, e.Name(), time.Time{}, bytes.NewReader(data))
		})
	}
}

// View returns what the page of the node shows, without a time before the first Snapshot.
func (p *Page) View() *View {
	if s := p.o.Snapshot(); s != nil {
		return p.view(s)
	}
	return &View{}
}

// JSON returns a handler of the View as JSON, with the device of the parameter device.
func (p *Page) JSON() http.Handler {
	return p.handler(func(r *http.Request) request { return request{device: r.URL.Query().Get("device"), json: true} })
}

// DevicePath is the path of the page of a device.
const DevicePath = "/device"

// handler serves what a request wants.
func (p *Page) handler(of func(*http.Request) request) http.Handler {
	return p.Limit(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		wanted := of(r)
		wanted.bundles = p.o.Bundles != nil && p.o.Permits(r)
		p.serve(w, r, wanted)
	}))
}

// Limit compresses the answers of h and limits them: clients that do not read their
// answer must not use up the file descriptors that scrapes need.
func (p *Page) Limit(h http.Handler) http.Handler {
	zipped := gzhttp.GzipHandler(h)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer p.sending.Add(-1)
		if p.sending.Add(1) > maxAnswers {
			http.Error(w, "too many viewers at the same time", http.StatusServiceUnavailable)
			return
		}
		// A ResponseWriter without deadlines, such as a test recorder, has no stalled
		// reader.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(patience))
		zipped.ServeHTTP(w, r)
	})
}

func (p *Page) serve(w http.ResponseWriter, r *http.Request, of request) {
	body, code, text := p.render(of)
	secure(w.Header())
	if body == nil {
		http.Error(w, text, code)
		return
	}
	tag := etag(body)
	w.Header().Set("ETag", tag)
	if r.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if of.json {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
	}
	_, _ = w.Write(body) // it fails when the viewer has gone
}

// render returns what is requested, or a status and a text.
func (p *Page) render(of request) (body []byte, code int, text string) {
	v := &View{} // without a time before the first Snapshot
	s := p.o.Snapshot()
	switch {
	case s != nil:
		v = p.view(s)
		if found := v.detail(s, of.device); !found && of.device != "" && !of.json {
			return nil, http.StatusNotFound, "no such device; the status page lists all"
		}
		if of.bundles {
			v.Bundles = p.o.Bundles()
		}
		if v.Alerts != nil && !of.json {
			v.Alerts.List, v.More.Alerts = first(v.Alerts.List, maxAlerts)
		}
	case !of.json:
		return nil, http.StatusServiceUnavailable, "no snapshot yet, try again in a second"
	}
	var b bytes.Buffer
	err := error(nil)
	if of.json {
		err = json.NewEncoder(&b).Encode(v)
	} else {
		err = page.Execute(&b, v)
	}
	if err != nil {
		p.o.Log.Error("Status page could not be rendered", "err", err)
		return nil, http.StatusInternalServerError, "the page could not be rendered"
	}
	return Visible(b.Bytes()), 0, ""
}

func etag(body []byte) string {
	sum := sha256.Sum256(body)
	return `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`
}

// Visible replaces characters that are not visible and change what a reader sees: a
// pod or a line of the kernel log must not reverse the text around it.
func Visible(body []byte) []byte {
	if utf8.Valid(body) && bytes.IndexFunc(body, hidden) < 0 {
		return body
	}
	return bytes.Map(func(r rune) rune {
		if hidden(r) {
			return '\uFFFD'
		}
		return r
	}, body)
}

func hidden(r rune) bool {
	return r != '\n' && r != '\t' && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}
