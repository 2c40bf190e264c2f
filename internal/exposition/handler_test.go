package exposition_test

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/exposition"
)

// gate is a gatherer that blocks until it is opened. asked receives its calls.
type gate struct{ asked, open chan struct{} }

func (g gate) Gather() ([]*dto.MetricFamily, error) {
	g.asked <- struct{}{}
	<-g.open
	return nil, nil
}

func TestTooManyScrapes(t *testing.T) {
	g := gate{make(chan struct{}, 1), make(chan struct{})}
	e := exposition.New(fixed(node(1)), g, exposition.Options{MaxInFlight: 1})
	done := make(chan int)
	go func() {
		code, _, _ := get(t, e)
		done <- code
	}()
	<-g.asked
	code, _, body := get(t, e, "Accept-Encoding", "gzip") // another answer than the first
	if code != http.StatusServiceUnavailable || !strings.Contains(body, "concurrent requests reached (1)") {
		t.Errorf("second scrape: %d %q, want 503 that names the limit", code, body)
	}
	close(g.open)
	if code := <-done; code != http.StatusOK {
		t.Errorf("first scrape: %d", code)
	}
	<-async(func() { <-g.asked })
	if code, _, _ := get(t, e, "Accept-Encoding", "gzip"); code != http.StatusOK {
		t.Errorf("scrape after the first was done: %d", code)
	}
}

// TestSameAnswer: clients that accept the same share one rendered page of a Snapshot.
func TestSameAnswer(t *testing.T) {
	gathered := 0
	snap := node(1)
	e := exposition.New(func() *collector.Snapshot { return snap }, prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		gathered++
		return nil, nil
	}), exposition.Options{})
	for i, c := range []struct {
		accept string
		change func()
		want   int
	}{
		{"text/plain", nil, 1},
		{"text/plain", nil, 1},
		{"application/openmetrics-text", nil, 2},
		{"text/plain", func() { snap = node(1) }, 3},
		{"text/plain", func() { e.Apply(exposition.Settings{Standard: true}) }, 4},
	} {
		if c.change != nil {
			c.change()
		}
		if get(t, e, "Accept", c.accept); gathered != c.want {
			t.Errorf("request %d: gathered %d times, want %d", i, gathered, c.want)
		}
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

// TestStalledReader: a client that does not read its page delays no other, and the
// deadline ends its request.
func TestStalledReader(t *testing.T) {
	for _, accept := range []string{text, protobuf} {
		e := exposition.New(fixed(node(128)), nil, exposition.Options{MaxInFlight: 1})
		c, returned := stall(t, e, accept)
		// After the first byte, the page is being written.
		if _, err := c.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if code, _, _ := get(t, e); code != http.StatusOK {
				t.Errorf("another client: %d", code)
			}
		}
		select {
		case <-returned:
			t.Error("the page fitted into the buffers: nothing was tested")
		default:
		}
		c.Close()
		<-returned

		e = exposition.New(fixed(node(128)), nil, exposition.Options{WriteTimeout: 100 * time.Millisecond})
		_, returned = stall(t, e, accept)
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
	each := func() *collector.Snapshot { return node(1) }
	e := exposition.New(each, own, exposition.Options{
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
	want := "level=ERROR msg=\"Metrics of the exporter itself are incomplete\" err=\"out of order\"\nlevel=INFO msg=\"Metrics of the exporter itself are complete again\"\n"
	if d := cmp.Diff(want, log.String()); d != "" {
		t.Errorf("log (-want +got):\n%s", d)
	}
	_, _, body := get(t, e)
	if line := `promhttp_metric_handler_errors_total{cause="gathering"} 2` + "\n"; !strings.Contains(body, line) {
		t.Errorf("no %q in\n%s", line, body)
	}
}
