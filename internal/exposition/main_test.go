package exposition_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/exposition"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	text     = "text/plain;version=0.0.4"
	protobuf = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"
)

func fixed(s *collector.Snapshot) func() *collector.Snapshot {
	return func() *collector.Snapshot { return s }
}

// get requests the page of h.
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

// samples returns the sample lines of the page of e, without the comments.
func samples(t testing.TB, e *exposition.Exporter) []string {
	t.Helper()
	_, _, page := get(t, e)
	return slices.DeleteFunc(strings.Split(strings.TrimSpace(page), "\n"), func(l string) bool { return strings.HasPrefix(l, "#") })
}

// rows are the families of a scope.
func rows(scope collector.Scope) []*collector.Metric {
	return slices.DeleteFunc(collector.Table(), func(m *collector.Metric) bool { return m.Scope != scope })
}

// node returns a Snapshot of GPUs with a reading of each family.
func node(gpus int) *collector.Snapshot {
	s := &collector.Snapshot{}
	reading := func(m *collector.Metric) collector.Reading {
		labels := make([]string, len(m.Labels))
		for i := range labels {
			labels[i] = "value"
		}
		return collector.Reading{Metric: m, Labels: labels, Value: 12.5}
	}
	for i := range gpus {
		d := collector.Device{ID: fmt.Sprintf("GPU-%08d", i), Class: collector.GPU, Vendor: "nvidia"}
		for _, m := range rows(collector.PerDevice) {
			d.Readings = append(d.Readings, reading(m))
		}
		s.Devices = append(s.Devices, d)
	}
	for _, m := range rows(collector.PerNode) {
		s.Node = append(s.Node, reading(m))
	}
	return s
}
