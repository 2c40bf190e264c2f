package exposition_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/exposition"
)

const (
	text        = "text/plain;version=0.0.4"
	openMetrics = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8"
	protobuf    = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"
)

// formats are Accept headers of formats that this package writes, and others.
var formats = []string{
	"", "*/*", text, openMetrics, protobuf,
	"text/plain;version=1.0.0",
	"application/openmetrics-text;version=0.0.1",
	"application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3",
	"application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;escaping=values",
	"text/plain;version=0.0.4;escaping=dots",
	"text/html",
}

// ownRegistry has the process's own families, before, between and after the
// snapshot's by name.
func ownRegistry() *prometheus.Registry {
	reg := prometheus.NewRegistry()
	add := func(c prometheus.Collector) { reg.MustRegister(c) }
	up := prometheus.NewGauge(prometheus.GaugeOpts{Name: "aaa_first", Help: "Comes first."})
	up.Set(1)
	add(up)
	mid := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "accel_config_info", Help: `With "quotes" and \.`}, []string{"file"})
	mid.WithLabelValues("/etc/\"x\"\n\\").Set(1)
	add(mid)
	h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "go_pauses_seconds", Help: "Pauses.", Buckets: []float64{1e-6, 1e-3, 1}})
	h.Observe(0.5)
	add(h)
	add(prometheus.NewSummary(prometheus.SummaryOpts{Name: "zzz_last_seconds", Help: "Comes last.", Objectives: map[float64]float64{0.5: 0.1}}))
	return reg
}

func fixed(s *collector.Snapshot) func() *collector.Snapshot {
	return func() *collector.Snapshot { return s }
}

// get asks h for the page and returns what a client would see.
func get(t testing.TB, h http.Handler, header ...string) (int, http.Header, string) {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	body, err := io.ReadAll(w.Result().Body)
	if err != nil {
		t.Fatal(err)
	}
	return w.Code, w.Result().Header, string(body)
}

// conventional serves e through promhttp.
func conventional(e *exposition.Exporter) http.Handler {
	return promhttp.HandlerFor(e.Gatherer(), handlerOpts)
}

var handlerOpts = promhttp.HandlerOpts{
	ErrorHandling:       promhttp.ContinueOnError,
	EnableOpenMetrics:   true,
	OfferedCompressions: []promhttp.Compression{promhttp.Identity, promhttp.Gzip},
}

// usual serves s, and what own gathers, as an exporter written with
// client_golang alone does.
func usual(s *collector.Snapshot, own prometheus.Gatherer, dropped drops) http.Handler {
	reg := prometheus.NewRegistry()
	n := newNaive(fixed(s))
	reg.MustRegister(collectorFunc(func(ch chan<- prometheus.Metric) {
		n.seen = make(map[string]bool)
		n.Collect(ch)
	}), dropped)
	return promhttp.HandlerFor(prometheus.Gatherers{reg, own}, handlerOpts)
}

// comparePages fails unless both handlers give the same answer.
func comparePages(t *testing.T, want, got http.Handler, header ...string) {
	t.Helper()
	wantCode, wantHeader, wantBody := get(t, want, header...)
	gotCode, gotHeader, gotBody := get(t, got, header...)
	if wantCode != gotCode {
		t.Errorf("%q: status %d, want %d", header, gotCode, wantCode)
	}
	// promhttp leaves the size to net/http, which knows it of small pages only.
	if size := gotHeader.Get("Content-Length"); size != "" && size != strconv.Itoa(len(gotBody)) {
		t.Errorf("%q: %s bytes announced, %d sent", header, size, len(gotBody))
	}
	gotHeader.Del("Content-Length")
	if d := cmp.Diff(wantHeader, gotHeader); d != "" {
		t.Errorf("%q: header (-want +got):\n%s", header, d)
	}
	if gotHeader.Get("Content-Encoding") == "gzip" {
		wantBody, gotBody = gunzip(t, wantBody), gunzip(t, gotBody)
	}
	if wantBody != gotBody {
		t.Errorf("%q: body (-want +got):\n%s", header, cmp.Diff(wantBody, gotBody))
	}
}

func gunzip(t testing.TB, s string) string {
	t.Helper()
	r, err := gzip.NewReader(strings.NewReader(s))
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestPageEqualsPromhttp(t *testing.T) {
	for name, s := range map[string]*collector.Snapshot{
		"nothing sampled": nil,
		"empty":           {},
		"whole devices":   node(2, 0, 100),
		"partitions":      node(2, 3, 40),
	} {
		t.Run(name, func(t *testing.T) {
			own := ownRegistry()
			e := exposition.New(fixed(s), own, exposition.Options{})
			want := usual(s, own, drops{})
			for _, accept := range formats {
				comparePages(t, want, e, "Accept", accept)
				comparePages(t, want, conventional(e), "Accept", accept)
				comparePages(t, want, e, "Accept", accept, "Accept-Encoding", "gzip")
			}
		})
	}
}

func TestPageIsClean(t *testing.T) {
	e := exposition.New(fixed(node(1, 1, 1000)), nil, exposition.Options{})
	families, err := e.Gatherer().Gather()
	if err != nil {
		t.Fatal(err)
	}
	if want := len(rows()) + len(exposition.Metrics()); len(families) != want {
		t.Errorf("%d families, want every row: %d", len(families), want)
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}
