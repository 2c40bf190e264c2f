package status

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"html/template"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/klauspost/compress/gzip"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/judge/allocation"
	"github.com/accel-exporter/accel-exporter/podmap"
	"github.com/accel-exporter/accel-exporter/podmap/kube"
)

// Options are the inputs of a Page. None of the functions may block.
type Options struct {
	// Node is the name of the node, Version that of the exporter, Metrics the path
	// of the metrics.
	Node, Version, Metrics string
	Snapshot               func() *collector.Snapshot
	// Allocations returns the report, and the states of kubelet and API server: nil
	// where they are not configured.
	Allocations func() (*allocation.Report, *podmap.Status, *kube.Status)
	// Alerts returns nil if no rules are evaluated.
	Alerts   func() *Alerts
	Settings func() *Settings
	Log      *slog.Logger
}

// Limits of the page: of answers that are being sent, and of the time to send one.
const (
	maxAnswers   = 16
	writeTimeout = 10 * time.Second
	// reuse is how long a page without a newer Snapshot is sent again: ages grow.
	reuse = 2 * time.Second
)

// Page serves the status page.
type Page struct {
	o       Options
	history history
	sending atomic.Int32

	mu       sync.Mutex
	of       *collector.Snapshot // that answers are of
	answers  map[request]*answer
	rendered time.Time
}

// request is what a viewer wants: the page of a device, or of the node if it is
// empty, or the View of it as JSON.
type request struct {
	device string
	json   bool
}

// New returns a Page.
func New(o Options) *Page {
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
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) { p.serve(w, r, request{}) })
	mux.HandleFunc("GET "+DevicePath, func(w http.ResponseWriter, r *http.Request) {
		id := r.URL.Query().Get("id")
		if id == "" {
			http.Error(w, "id is missing; "+DevicePath+"?id=ID is accepted", http.StatusBadRequest)
			return
		}
		p.serve(w, r, request{device: id})
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

// ServeView serves the View as JSON, with the device of the parameter device. Before
// the first Snapshot it is empty.
func (p *Page) ServeView(w http.ResponseWriter, r *http.Request) {
	p.serve(w, r, request{device: r.URL.Query().Get("device"), json: true})
}

// DevicePath is the path of the page of a device.
const DevicePath = "/device"

// Run records the history until ctx is done.
func (p *Page) Run(ctx context.Context) {
	tick := time.NewTicker(step)
	defer tick.Stop()
	for {
		if s := p.o.Snapshot(); s != nil {
			p.history.record(s, time.Now())
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// answer is a rendered page. It is shared by all viewers and not changed.
type answer struct {
	body, zipped []byte
	tag          string
}

func (p *Page) serve(w http.ResponseWriter, r *http.Request, of request) {
	if p.sending.Add(1) > maxAnswers {
		p.sending.Add(-1)
		http.Error(w, "too many viewers at the same time", http.StatusServiceUnavailable)
		return
	}
	defer p.sending.Add(-1)
	a, code, text := p.get(of)
	secure(w.Header())
	if a == nil {
		http.Error(w, text, code)
		return
	}
	// A ResponseWriter without deadlines, such as a test recorder, has no stalled
	// reader.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTimeout))
	w.Header().Set("ETag", a.tag)
	w.Header().Set("Vary", "Accept-Encoding")
	if r.Header.Get("If-None-Match") == a.tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if of.json {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
	}
	body := a.body
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		w.Header().Set("Content-Encoding", "gzip")
		body = a.zipped
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body) // the viewer has gone
}

// get returns what is requested, or a status and a text.
func (p *Page) get(of request) (*answer, int, string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.o.Snapshot()
	if s == nil && of.json {
		a, _ := render(&View{}, true) // without a time
		return a, 0, ""
	}
	if s == nil {
		return nil, http.StatusServiceUnavailable, "no snapshot yet, try again in a second"
	}
	if p.of != s || time.Since(p.rendered) > reuse {
		p.of, p.answers, p.rendered = s, map[request]*answer{}, time.Now()
	}
	if a := p.answers[of]; a != nil {
		return a, 0, ""
	}
	v := p.view(s)
	if found := v.detail(p, s, of.device); !found && of.device != "" && !of.json {
		return nil, http.StatusNotFound, "no such device; the status page lists all"
	}
	if of == (request{}) {
		v.Settings = p.o.Settings()
	}
	a, err := render(v, of.json)
	if err != nil {
		p.o.Log.Error("Status page could not be rendered", "err", err)
		return nil, http.StatusInternalServerError, "the page could not be rendered"
	}
	p.answers[of] = a
	time.AfterFunc(2*reuse, p.forget)
	return a, 0, ""
}

// forget frees pages that no browser has requested for a while.
func (p *Page) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.rendered) > reuse {
		p.of, p.answers = nil, nil
	}
}

func render(v *View, asJSON bool) (*answer, error) {
	var b, z bytes.Buffer
	err := error(nil)
	if asJSON {
		err = json.NewEncoder(&b).Encode(v)
	} else {
		err = page.Execute(&b, v)
	}
	if err != nil {
		return nil, err
	}
	body := visible(b.Bytes())
	// A compressor with a state has 0.8 MiB, which would be kept between two pages.
	w, err := gzip.NewWriterLevel(&z, gzip.StatelessCompression)
	if err != nil {
		return nil, err
	}
	_, _ = w.Write(body) // a buffer accepts all
	if err := w.Close(); err != nil {
		return nil, err
	}
	return &answer{body: body, zipped: z.Bytes(), tag: etag(body)}, nil
}

func etag(body []byte) string {
	sum := sha256.Sum256(body)
	return `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`
}

// visible replaces characters that are not visible and change what a reader sees: a
// pod or a line of the kernel log must not reverse the text around it.
func visible(body []byte) []byte {
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
	switch {
	case r == '\n' || r == '\t':
		return false
	case r < ' ', r >= 0x7f && r <= 0x9f: // control characters
		return true
	case r == 0x61c, r >= 0x200b && r <= 0x200f, r >= 0x2028 && r <= 0x202e, r >= 0x2060 && r <= 0x2069, r == 0xfeff:
		return true
	}
	return false
}
