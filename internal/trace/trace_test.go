package trace_test

import (
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/judge/allocation"
	"github.com/accel-exporter/accel-exporter/internal/trace"
	"github.com/accel-exporter/accel-exporter/internal/trace/otlptest"
)

func working(first, last int) func(*allocation.Record) {
	return func(l *allocation.Record) { l.First, l.Last = at(first), at(last) }
}

func idleSince(since int) func(*allocation.Record) {
	return func(l *allocation.Record) { l.IdleSince = at(since) }
}

func broken(xid, seconds int) func(*allocation.Record) {
	return func(l *allocation.Record) {
		l.Faults = append(l.Faults, allocation.Fault{Name: fmt.Sprint("xid_", xid), Time: at(seconds)})
		l.Health, l.Action = "failed", "reset"
	}
}

const spansOfPlay = 9

// play shows the history of a pod with two devices: start, idle period, activity,
// fault and release.
func (g *rigged) play(pod string) {
	g.t.Helper()
	xid := []collector.Event{{Kind: collector.EventXid, Code: 79, Device: "GPU-1", Time: at(400), Sub: "unit", Detail: "GPU has fallen off the bus."}}
	g.show(0, nil)
	g.show(10, nil, record(pod, "GPU-1", 10), record(pod, "GPU-2", 10))
	g.show(100, nil, record(pod, "GPU-1", 10, working(70, 100)), record(pod, "GPU-2", 10, idleSince(10)))
	g.show(200, nil, record(pod, "GPU-1", 10, working(70, 120), idleSince(120)), record(pod, "GPU-2", 10, idleSince(10)))
	g.show(300, nil, record(pod, "GPU-1", 10, working(70, 290)), record(pod, "GPU-2", 10, idleSince(10)))
	g.show(401, xid, record(pod, "GPU-1", 10, working(70, 399), broken(79, 400)), record(pod, "GPU-2", 10, idleSince(10)))
	g.show(420, xid)
	g.show(440, xid) // end of the time in which faults may arrive
}

// TestTrace checks the spans that a receiver gets. Two exporters send them with the
// same IDs, as before and after a restart.
func TestTrace(t *testing.T) {
	var first []otlptest.Span
	for range 2 {
		var r otlptest.Receiver
		l := listen(t, "127.0.0.1:0")
		defer r.Serve(l, nil)()
		g := follow(t, trace.Options{Endpoint: endpoint(t, "http", l)})
		g.identity["a"] = trace.Identity{UID: "11111111-2222-3333-4444-555555555555", Final: true}
		g.play("a")
		g.until("the spans", func() bool { return len(r.Spans()) == spansOfPlay })
		spans := r.Spans()
		checkTrace(t, spans)
		slices.SortFunc(spans, func(a, b otlptest.Span) int { return strings.Compare(a.ID, b.ID) })
		if diff := cmp.Diff(first, spans); first != nil && diff != "" {
			t.Errorf("(-first exporter +second):\n%s", diff)
		}
		first = spans
	}
}

// checkTrace checks the spans of play.
func checkTrace(t *testing.T, spans []otlptest.Span) {
	t.Helper()
	at := slices.IndexFunc(spans, func(s otlptest.Span) bool { return s.Name == "accel.allocation" })
	if at < 0 {
		t.Fatal("no root")
	}
	root := spans[at]
	ids := map[string]bool{}
	var got []string
	for _, s := range spans {
		if s.Trace != root.Trace || ids[s.ID] || s.ID == root.ID && s.Parent != "" || s.ID != root.ID && s.Parent != root.ID {
			t.Errorf("%s has the trace %s, the parent %s and the ID %s", s.Name, s.Trace, s.Parent, s.ID)
		}
		ids[s.ID] = true
		want := map[string]string{
			"k8s.namespace.name": "ml", "k8s.pod.name": "a", "k8s.pod.uid": "11111111-2222-3333-4444-555555555555",
			"k8s.node.name": "node-1", "host.name": "host-1", "service.name": "accel-exporter", "service.version": "1.2.3",
			"telemetry.sdk.name": "opentelemetry", "telemetry.sdk.language": "go", "telemetry.sdk.version": s.Resource["telemetry.sdk.version"],
		}
		if diff := cmp.Diff(want, s.Resource); diff != "" {
			t.Errorf("resource of %s (-want +got):\n%s", s.Name, diff)
		}
		got = append(got, fmt.Sprintf("%s %s %s-%s %v %s", s.Name, s.Attrs["hw.id"], s.Start.Sub(start), s.End.Sub(start), s.Status == tracepb.Status_STATUS_CODE_ERROR, s.Message))
	}
	slices.Sort(got)
	want := []string{
		"accel.active GPU-1 1m10s-2m0s false ",
		"accel.active GPU-1 4m50s-7m0s false ",
		"accel.allocation  10s-10s false ",
		"accel.device GPU-1 10s-7m0s true released 20s after xid_79",
		"accel.device GPU-2 10s-7m0s false ",
		"accel.fault GPU-1 6m40s-6m40s true xid_79",
		"accel.idle GPU-1 2m0s-4m50s false ",
		"accel.wait GPU-1 10s-1m10s false ",
		"accel.wait GPU-2 10s-7m0s false ",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("spans (-want +got):\n%s", diff)
	}
	device := map[string]string{
		"hw.id": "GPU-1", "hw.type": "gpu", "hw.name": "gpu1", "hw.vendor": "nvidia", "hw.model": "H100",
		"accel.device.pci_address": "0000:1b:00.0", "k8s.container.name": "main",
		"accel.health.state": "failed", "accel.health.action": "reset",
	}
	for _, s := range spans {
		var want map[string]string
		switch {
		case s.Name == "accel.allocation":
			want = map[string]string{"accel.allocation.devices": "GPU-1,GPU-2", "accel.allocation.device_count": "2", "accel.allocation.start_observed": "true"}
		case s.Name == "accel.device" && s.Attrs["hw.id"] == "GPU-1":
			want = map[string]string{
				"accel.allocation.resources": "nvidia.com/gpu", "accel.allocation.shared": "false",
				"accel.allocation.start_observed": "true", "accel.allocation.end_observed": "true",
			}
		case s.Name == "accel.fault":
			want = map[string]string{"accel.fault.name": "xid_79", "accel.xid.code": "79", "accel.xid.sub": "unit", "accel.fault.detail": "GPU has fallen off the bus."}
		default:
			continue
		}
		if s.Name != "accel.allocation" {
			maps.Copy(want, device)
		}
		if diff := cmp.Diff(want, s.Attrs); diff != "" {
			t.Errorf("%s (-want +got):\n%s", s.Name, diff)
		}
	}
}

// TestUnsampled: spans are dropped if the trace of the annotation is not sampled.
func TestUnsampled(t *testing.T) {
	var r otlptest.Receiver
	l := listen(t, "127.0.0.1:0")
	defer r.Serve(l, nil)()
	g := follow(t, trace.Options{Endpoint: endpoint(t, "http", l)})
	g.identity["a"] = trace.Identity{UID: "u", Context: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00", Final: true}
	g.play("a")
	g.stop()
	if n := len(r.Spans()); n > 0 {
		t.Errorf("%d spans arrived", n)
	}
}

// TestAnswers: whether the first span arrives, or the log has the answer that refused it.
// Later requests are accepted.
func TestAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		answer func(http.ResponseWriter)
		want   string // in the log, empty where the span arrives
	}{
		"busy":        {func(w http.ResponseWriter) { w.Header().Set("Retry-After", "0"); w.WriteHeader(429) }, ""},
		"unavailable": {func(w http.ResponseWriter) { w.WriteHeader(503) }, ""},
		"refused":     {func(w http.ResponseWriter) { http.Error(w, "no such tenant", http.StatusForbidden) }, "no such tenant"},
		"redirect":    {func(w http.ResponseWriter) { w.Header().Set("Location", "http://127.0.0.1:1/"); w.WriteHeader(307) }, "307"},
		"partial": {func(w http.ResponseWriter) {
			reply, _ := proto.Marshal(&collectorpb.ExportTraceServiceResponse{PartialSuccess: &collectorpb.ExportTracePartialSuccess{RejectedSpans: 1, ErrorMessage: "one too many"}})
			w.Header().Set("Content-Type", "application/x-protobuf")
			w.Write(reply)
		}, "one too many"},
	} {
		t.Run(name, func(t *testing.T) {
			first := true
			r := otlptest.Receiver{HTTP: func(w http.ResponseWriter) bool {
				was := first
				if first = false; was {
					c.answer(w)
				}
				return was
			}}
			l := listen(t, "127.0.0.1:0")
			defer r.Serve(l, nil)()
			g := follow(t, trace.Options{Endpoint: endpoint(t, "http", l)})
			g.identity["a"] = trace.Identity{UID: "u", Final: true}
			g.show(10, nil, record("a", "GPU-1", 10))
			g.until("the first span", func() bool {
				return c.want == "" && len(r.Spans()) == 1 || c.want != "" && strings.Contains(g.log.String(), c.want)
			})
			g.show(20, nil, record("a", "GPU-1", 10, working(15, 15)))
			g.until("the next span", func() bool {
				return slices.ContainsFunc(r.Spans(), func(s otlptest.Span) bool { return s.Name == "accel.wait" })
			})
		})
	}
}

// TestHeaders: each request has the headers of the file.
func TestHeaders(t *testing.T) {
	var r otlptest.Receiver
	l := listen(t, "127.0.0.1:0")
	defer r.Serve(l, nil)()
	file := filepath.Join(t.TempDir(), "headers.yml")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, wrong := range []string{"- Bearer one-secret\n", "authorization: \"one-secret\\n\"\n"} {
		write(wrong)
		if _, err := trace.ReadHeaders(file); err == nil || strings.Contains(err.Error(), "one-secret") {
			t.Errorf("%q: %v", wrong, err)
		}
	}
	write("Authorization: Bearer one-secret\nx-tenant: team\n")
	g := follow(t, trace.Options{Endpoint: endpoint(t, "http", l), HeadersFile: file})
	g.identity["a"] = trace.Identity{UID: "u", Final: true}
	g.show(10, nil, record("a", "GPU-1", 10))
	g.until("a span", func() bool { return len(r.Spans()) == 1 })
	if h := r.Headers()[0]; h["authorization"] != "Bearer one-secret" || h["x-tenant"] != "team" || strings.Contains(g.log.String(), "one-secret") {
		t.Errorf("%v\n%s", h, g.log)
	}
}

// TestAway: a receiver that cannot be reached is in the log once, and so is at the end
// that spans are lost.
func TestAway(t *testing.T) {
	l := listen(t, "127.0.0.1:0")
	e := endpoint(t, "http", l)
	l.Close()
	g := follow(t, trace.Options{Endpoint: e})
	g.follower.Send(trace.Span{Name: "a"})
	g.until("a request", func() bool { return strings.Contains(g.log.String(), "A request with traces failed") })
	g.stop()
	if text := g.log.String(); strings.Count(text, "A request with traces failed") != 1 || !strings.Contains(text, "Spans are lost") {
		t.Error(text)
	}
}

// TestTLS: the certificate of the receiver is verified by --otlp.ca-file.
func TestTLS(t *testing.T) {
	s := httptest.NewTLSServer(nil)
	s.Close()
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	var r otlptest.Receiver
	l := listen(t, "127.0.0.1:0")
	defer r.Serve(l, &tls.Config{Certificates: s.TLS.Certificates})()
	e := endpoint(t, "https", l)
	untrusting := follow(t, trace.Options{Endpoint: e})
	untrusting.identity["a"] = trace.Identity{UID: "u", Final: true}
	untrusting.show(10, nil, record("a", "GPU-1", 10))
	untrusting.until("a failure", func() bool { return strings.Contains(untrusting.log.String(), "certificate") })
	g := follow(t, trace.Options{Endpoint: e, CAFile: file})
	g.identity["a"] = trace.Identity{UID: "u", Final: true}
	g.show(10, nil, record("a", "GPU-1", 10))
	g.until("a span", func() bool { return len(r.Spans()) > 0 })
	untrusting.stop()
	if n := len(r.Spans()); n > 1 {
		t.Errorf("%d spans were sent to a receiver with an unknown certificate", n-1)
	}
}

// TestEnd: at the end of the exporter, stages end as unobserved. Allocations do not end.
func TestEnd(t *testing.T) {
	var r otlptest.Receiver
	l := listen(t, "127.0.0.1:0")
	defer r.Serve(l, nil)()
	g := follow(t, trace.Options{Endpoint: endpoint(t, "http", l), Drain: patience})
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
	if got := strings.Join(names, " "); got != "accel.allocation accel.wait accel.idle" {
		t.Errorf("sent: %s", got)
	}
}
