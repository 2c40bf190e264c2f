package exposition_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/exposition"
)

func TestNegotiationIsPromhttps(t *testing.T) {
	s, own := node(1, 0, 30), ownRegistry()
	e := exposition.New(fixed(s), own, exposition.Options{})
	want := usual(s, own, drops{})
	for _, encoding := range []string{
		"gzip", "identity", "*", "", "br", "zstd", "gzip, deflate", "deflate, gzip;q=1.0, *;q=0.5", "gzip;q=0",
		"identity;q=0", "identity;q=0, gzip;q=0", "*;q=0", "gzip;q=0.5, identity;q=0.4", "gzip;q=0.5,identity",
		"GZIP", "gzip;", "gzip;q=", "gzip;q=x", "gzip;q=1.5", "gzip;q=0.", "gzip ; q=0.3", "gzip,,deflate", "gzip,", ",gzip",
		"gzip;level=1", "x-gzip", "gzip q=1", `"gzip"`, "gzip;q=1e0", "gzip;q=-1", "gzip;q=.5",
	} {
		comparePages(t, want, e, "Accept-Encoding", encoding)
	}
}

func TestNameFilter(t *testing.T) {
	s, own := node(1, 0, 30), ownRegistry()
	e := exposition.New(fixed(s), own, exposition.Options{})
	for _, query := range []string{"?name[]=accel_device_up&name[]=go_pauses_seconds", "?name%5B%5D=nothing", "?name[]=", "?other=1"} {
		pages := make([]string, 2)
		for i, h := range []http.Handler{usual(s, own, drops{}), e} {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics"+query, nil))
			pages[i] = w.Body.String()
		}
		if d := cmp.Diff(pages[0], pages[1]); d != "" {
			t.Errorf("%s (-want +got):\n%s", query, d)
		}
	}
}

// The formats for debugging take promhttp a hundred times as long as text, and a
// filter leads past the cache: both are answered as text.
func TestExpensiveFormatsAreText(t *testing.T) {
	s, own := node(1, 0, 30), ownRegistry()
	e := exposition.New(fixed(s), own, exposition.Options{})
	want := httptest.NewRecorder()
	usual(s, own, drops{}).ServeHTTP(want, httptest.NewRequest(http.MethodGet, "/metrics?name[]=accel_device_up", nil))
	for _, accept := range []string{strings.Replace(protobuf, "delimited", "text", 1), strings.Replace(protobuf, "delimited", "compact-text", 1), protobuf} {
		got, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/metrics?name[]=accel_device_up", nil)
		r.Header.Set("Accept", accept)
		e.ServeHTTP(got, r)
		if d := cmp.Diff(want.Body.String(), got.Body.String()); d != "" || got.Header().Get("Content-Type") != want.Header().Get("Content-Type") {
			t.Errorf("%s: %q (-want +got):\n%s", accept, got.Header(), d)
		}
	}
}

// counted counts its calls.
type counted struct {
	prometheus.Gatherer
	calls atomic.Int32
}

func (c *counted) Gather() ([]*dto.MetricFamily, error) {
	c.calls.Add(1)
	return c.Gatherer.Gather()
}

// A page in protobuf is rendered once for a Snapshot, however often it is
// requested, and again for the next one.
func TestProtobufIsRenderedOnce(t *testing.T) {
	own := &counted{Gatherer: ownRegistry()}
	var latest atomic.Pointer[collector.Snapshot]
	latest.Store(node(1, 0, 30))
	e := exposition.New(latest.Load, own, exposition.Options{})
	for n := range int32(2) {
		pages := map[string]bool{}
		for range 3 {
			_, header, body := get(t, e, "Accept", protobuf)
			pages[header.Get("Content-Type")+body] = true
		}
		if len(pages) != 1 || own.calls.Load() != n+1 {
			t.Errorf("%d pages, rendered %d times for %d snapshots", len(pages), own.calls.Load(), n+1)
		}
		latest.Store(next(latest.Load()))
	}
}

// gate is a gatherer that blocks until it is opened. asked receives its calls.
type gate struct{ asked, open chan struct{} }

func (g gate) Gather() ([]*dto.MetricFamily, error) {
	g.asked <- struct{}{}
	<-g.open
	return nil, nil
}

func TestTooManyScrapes(t *testing.T) {
	g := gate{make(chan struct{}, 1), make(chan struct{})}
	e := exposition.New(fixed(node(1, 0, 5)), g, exposition.Options{MaxInFlight: 1})
	done := make(chan int)
	go func() {
		code, _, _ := get(t, e)
		done <- code
	}()
	<-g.asked
	code, _, body := get(t, e)
	if code != http.StatusServiceUnavailable || !strings.Contains(body, "concurrent requests reached (1)") {
		t.Errorf("second scrape: %d %q, want 503 that names the limit", code, body)
	}
	close(g.open)
	if code := <-done; code != http.StatusOK {
		t.Errorf("first scrape: %d", code)
	}
	<-async(func() { <-g.asked })
	if code, _, _ := get(t, e); code != http.StatusOK {
		t.Errorf("scrape after the first was done: %d", code)
	}
}

// async runs f and returns a channel that is closed at once.
func async(f func()) chan struct{} {
	c := make(chan struct{})
	go f()
	close(c)
	return c
}

// smallBuffers makes every connection stall early.
type smallBuffers struct{ net.Listener }

func (l smallBuffers) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		err = c.(*net.TCPConn).SetWriteBuffer(4096)
	}
	return c, err
}

// stall serves h to a client that requests a page and does not read it. It
// returns the connection and a channel that receives when h has returned.
func stall(t *testing.T, h http.Handler, accept string) (net.Conn, chan struct{}) {
	returned := make(chan struct{}, 1)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r)
		returned <- struct{}{}
	}))
	server.Listener = smallBuffers{server.Listener}
	server.Start()
	t.Cleanup(server.Close)
	c, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.(*net.TCPConn).SetReadBuffer(4096); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(c, "GET /metrics HTTP/1.1\r\nHost: x\r\nAccept: "+accept+"\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	return c, returned
}

// stallingFormats are one that this package writes and one that promhttp does.
var stallingFormats = []string{text, protobuf}

func TestStalledReaderDelaysNoOther(t *testing.T) {
	for _, accept := range stallingFormats {
		var latest atomic.Pointer[collector.Snapshot]
		latest.Store(node(16, 7, 60))
		e := exposition.New(latest.Load, nil, exposition.Options{MaxInFlight: 1})
		c, returned := stall(t, e, accept)
		// After the first byte, the page is being written.
		if _, err := c.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			latest.Store(next(latest.Load()))
			comparePages(t, usual(latest.Load(), prometheus.NewRegistry(), drops{}), e, "Accept", text)
		}
		select {
		case <-returned:
			t.Error("the page fitted into the buffers: nothing was tested")
		default:
		}
		c.Close()
		<-returned
	}
}

func TestDeadlineFreesAStalledScrape(t *testing.T) {
	for _, accept := range stallingFormats {
		e := exposition.New(fixed(node(16, 7, 60)), nil, exposition.Options{WriteTimeout: 100 * time.Millisecond})
		_, returned := stall(t, e, accept)
		<-returned
	}
}

// flaky is a gatherer that fails while fail is set.
type flaky struct {
	prometheus.Gatherer
	fail bool
}

func (f *flaky) Gather() ([]*dto.MetricFamily, error) {
	families, err := f.Gatherer.Gather()
	if f.fail {
		err = errors.Join(err, errors.New("out of order"))
	}
	return families, err
}

func TestOwnMetricsFail(t *testing.T) {
	var log bytes.Buffer
	reg := prometheus.NewRegistry()
	own := &flaky{Gatherer: reg}
	e := exposition.New(fixed(node(1, 0, 70)), own, exposition.Options{
		Registry: reg,
		Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}})),
	})
	for _, own.fail = range []bool{false, true, true, false, false} {
		code, _, body := get(t, e)
		if code != http.StatusOK || !strings.Contains(body, "accel_device_up") || !strings.Contains(body, "promhttp_metric_handler_errors_total") {
			t.Errorf("failing %v: %d\n%s", own.fail, code, body)
		}
	}
	want := "level=ERROR msg=\"own metrics are incomplete\" err=\"out of order\"\nlevel=INFO msg=\"own metrics are complete again\"\n"
	if d := cmp.Diff(want, log.String()); d != "" {
		t.Errorf("log (-want +got):\n%s", d)
	}
	_, _, body := get(t, e)
	if line := `promhttp_metric_handler_errors_total{cause="gathering"} 2` + "\n"; !strings.Contains(body, line) {
		t.Errorf("no %q in\n%s", line, body)
	}
}

// A client rejects a page on which a name occurs twice.
func TestOwnFamilyOfTheSameName(t *testing.T) {
	reg := prometheus.NewRegistry()
	reg.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: "accel_device_up", Help: "Mine."}))
	e := exposition.New(fixed(node(1, 0, 70)), reg, exposition.Options{})
	for _, h := range []http.Handler{e, conventional(e)} {
		_, _, body := get(t, h)
		if n := strings.Count(body, "# TYPE accel_device_up "); n != 1 || strings.Contains(body, "Mine.") {
			t.Errorf("%d heads of accel_device_up:\n%s", n, body)
		}
	}
}

func TestInstrumented(t *testing.T) {
	reg := prometheus.NewRegistry()
	h := promhttp.InstrumentMetricHandler(reg, exposition.New(fixed(node(1, 0, 5)), reg, exposition.Options{Registry: reg, WriteTimeout: time.Minute}))
	get(t, h)
	_, _, body := get(t, h)
	for _, line := range []string{`promhttp_metric_handler_requests_total{code="200"} 1`, "promhttp_metric_handler_requests_in_flight 1"} {
		if !strings.Contains(body, line+"\n") {
			t.Errorf("no %q in\n%s", line, body)
		}
	}
}

// gzip(1) shares no code with the reader of the other tests.
func TestGzipReadsIt(t *testing.T) {
	path, err := exec.LookPath("gzip")
	if err != nil {
		t.Skip(err)
	}
	latest := ticker(4, 7, 60)
	e := exposition.New(latest, ownRegistry(), exposition.Options{})
	for _, accept := range []string{text, text, text, openMetrics, protobuf, protobuf} {
		_, _, body := get(t, e, "Accept", accept, "Accept-Encoding", "gzip")
		c := exec.CommandContext(context.Background(), path, "-t")
		c.Stdin = strings.NewReader(body)
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", accept, err, out)
		}
	}
}
