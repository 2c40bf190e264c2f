package trace_test

import (
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/accel-exporter/accel-exporter/internal/trace"
	"github.com/accel-exporter/accel-exporter/internal/trace/otlptest"
)

// TestOverflow: spans beyond the capacity of the queue are counted as overflow. Spans
// that are queued at the end of the exporter are counted as shutdown.
func TestOverflow(t *testing.T) {
	l := listen(t, "127.0.0.1:0")
	e := endpoint(t, "http", l)
	l.Close()
	g := newStage(t, trace.Options{Endpoint: e, Drain: time.Millisecond})
	g.identity["a"] = trace.Identity{UID: "u", Final: true}
	capacity := g.metric("accel_traces_queue_capacity_spans", "")
	const overflow = 7
	for i := range int(capacity) + overflow {
		g.follower.Send(trace.Span{Name: fmt.Sprint(i)})
	}
	if n := g.metric("accel_traces_queue_spans", ""); n != capacity || g.metric("accel_traces_spans_total", "overflow") != overflow {
		t.Errorf("%g queued, %g overflow", n, g.metric("accel_traces_spans_total", "overflow"))
	}
	g.until("a request", func() bool { return g.metric("accel_traces_batches_total", "failed") > 0 })
	g.stop()
	if n := g.metric("accel_traces_spans_total", "shutdown"); n != capacity || g.metric("accel_traces_queue_spans", "") != 0 || !strings.Contains(g.log.String(), "Spans are lost") {
		t.Errorf("%g lost at the end\n%s", n, g.log)
	}
}

// TestTLS: the certificate of the receiver is verified by --otlp.ca-file.
func TestTLS(t *testing.T) {
	cert, file := certificate(t)
	for _, scheme := range []string{"https", "grpcs"} {
		t.Run(scheme, func(t *testing.T) {
			var r otlptest.Receiver
			l := listen(t, "127.0.0.1:0")
			config := &tls.Config{Certificates: []tls.Certificate{cert}}
			if scheme == "https" {
				defer r.Serve(l, nil, config)()
			} else {
				defer r.Serve(nil, l, config)()
			}
			e := endpoint(t, scheme, l)
			untrusting := newStage(t, trace.Options{Endpoint: e, Drain: time.Millisecond})
			untrusting.identity["a"] = trace.Identity{UID: "u", Final: true}
			untrusting.show(10, nil, record("a", "GPU-1", 10))
			untrusting.until("a failure", func() bool { return untrusting.metric("accel_traces_batches_total", "failed") > 0 })
			g := newStage(t, trace.Options{Endpoint: e, CAFile: file})
			g.identity["a"] = trace.Identity{UID: "u", Final: true}
			g.show(10, nil, record("a", "GPU-1", 10))
			g.until("a span", func() bool { return g.sent() == 1 })
			if n := untrusting.sent(); n > 0 {
				t.Errorf("%d spans were sent to a receiver with an unknown certificate", n)
			}
		})
	}
}

// certificate returns a certificate for 127.0.0.1 and a file with it.
func certificate(t *testing.T) (tls.Certificate, string) {
	t.Helper()
	s := httptest.NewTLSServer(nil)
	defer s.Close()
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	return s.TLS.Certificates[0], file
}

// TestEnd: at the end of the exporter, idle periods end as unobserved. Allocations do
// not end.
func TestEnd(t *testing.T) {
	var r otlptest.Receiver
	l := listen(t, "127.0.0.1:0")
	defer r.Serve(l, nil, nil)()
	g := newStage(t, trace.Options{Endpoint: endpoint(t, "http", l)})
	g.show(10, nil, record("a", "GPU-1", 10)) // the UID is not known yet
	g.show(20, nil, record("a", "GPU-1", 10, working(12, 15), idleSince(15)))
	g.stop()
	var names []string
	for _, s := range r.Spans() {
		names = append(names, s.Name)
		if s.Name == "accel.idle" && (s.Attrs["accel.observed"] != "false" || !s.End.Equal(at(20))) {
			t.Errorf("%+v", s)
		}
	}
	if got := strings.Join(names, " "); got != "accel.held accel.wait accel.idle" {
		t.Errorf("sent: %s", got)
	}
}

// TestEnvironment: the environment variables of OpenTelemetry's SDK apply. Options take
// precedence.
func TestEnvironment(t *testing.T) {
	for name, value := range map[string]string{
		"OTEL_RESOURCE_ATTRIBUTES": "k8s.cluster.name=blue,k8s.pod.name=mine", "OTEL_SERVICE_NAME": "gpus",
		"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_HEADERS": "x-tenant=team", "OTEL_EXPORTER_OTLP_COMPRESSION": "none",
	} {
		t.Setenv(name, value)
	}
	var r otlptest.Receiver
	l := listen(t, "127.0.0.1:0")
	defer r.Serve(l, nil, nil)()
	g := newStage(t, trace.Options{Endpoint: endpoint(t, "http", l)})
	g.identity["a"] = trace.Identity{UID: "u", Final: true}
	g.show(10, nil, record("a", "GPU-1", 10))
	g.until("a span", func() bool { return g.sent() == 1 })
	res := r.Spans()[0].Resource
	if res["k8s.cluster.name"] != "blue" || res["service.name"] != "gpus" || res["k8s.pod.name"] != "a" || r.Headers()[0]["x-tenant"] != "team" {
		t.Errorf("%v\n%v", res, r.Headers())
	}
}
