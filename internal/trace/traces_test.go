package trace_test

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
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

// play shows the history of a pod with two devices: start, idle period, activity,
// fault and release.
func (g *stage) play(pod string) {
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

// total returns the number of spans.
func (g *stage) total() int {
	n := g.metric("accel_traces_queue_spans", "")
	for _, result := range []string{"sent", "rejected", "unsampled", "overflow", "shutdown"} {
		n += g.metric("accel_traces_spans_total", result)
	}
	return int(n)
}

func (g *stage) sent() int { return int(g.metric("accel_traces_spans_total", "sent")) }

// TestTrace checks the spans that a receiver gets over both protocols. Two exporters
// send them with the same IDs, as before and after a restart.
func TestTrace(t *testing.T) {
	var first []otlptest.Span
	for _, scheme := range []string{"http", "grpc"} {
		t.Run(scheme, func(t *testing.T) {
			var r otlptest.Receiver
			l := listen(t, "127.0.0.1:0")
			defer serve(&r, scheme, l)()
			g := newStage(t, trace.Options{Endpoint: endpoint(t, scheme, l)})
			g.identity["a"] = trace.Identity{UID: "11111111-2222-3333-4444-555555555555", Final: true}
			g.play("a")
			g.until("the spans", func() bool { return g.sent() == 9 })
			spans := r.Spans()
			checkTrace(t, spans)
			slices.SortFunc(spans, func(a, b otlptest.Span) int { return strings.Compare(a.ID, b.ID) })
			if diff := cmp.Diff(first, spans); first != nil && diff != "" {
				t.Errorf("(-first exporter +second):\n%s", diff)
			}
			first = spans
		})
	}
}

func serve(r *otlptest.Receiver, scheme string, l net.Listener) (stop func()) {
	if strings.HasPrefix(scheme, "grpc") {
		return r.Serve(nil, l, nil)
	}
	return r.Serve(l, nil, nil)
}

// checkTrace checks the spans of play.
func checkTrace(t *testing.T, spans []otlptest.Span) {
	t.Helper()
	root := named(spans, "accel.allocation")
	devices := named(spans, "accel.hold")
	if len(root) != 1 || len(devices) != 2 {
		t.Fatalf("%d spans accel.allocation, %d spans accel.hold", len(root), len(devices))
	}
	slices.SortFunc(devices, func(a, b otlptest.Span) int { return strings.Compare(a.Attrs["hw.id"], b.Attrs["hw.id"]) })
	ids := map[string]bool{}
	for _, s := range spans {
		if s.Trace != root[0].Trace || ids[s.ID] {
			t.Errorf("%s has the trace %s and the ID %s", s.Name, s.Trace, s.ID)
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
	}
	for _, s := range spans {
		switch s.Name {
		case "accel.allocation":
			if s.Parent != "" {
				t.Errorf("the root has the parent %s", s.Parent)
			}
		case "accel.hold":
			if s.Parent != root[0].ID {
				t.Errorf("accel.hold has the parent %s", s.Parent)
			}
		default:
			if s.Parent != devices[0].ID && s.Parent != devices[1].ID {
				t.Errorf("%s has the parent %s", s.Name, s.Parent)
			}
		}
	}
	var got []string
	for _, s := range spans {
		got = append(got, fmt.Sprintf("%s %s %s-%s %v %s", s.Name, s.Attrs["hw.id"], s.Start.Sub(start), s.End.Sub(start), s.Status == tracepb.Status_STATUS_CODE_ERROR, s.Message))
	}
	slices.Sort(got)
	want := []string{
		"accel.allocation  10s-7m0s true GPU-1: released 20s after xid_79",
		"accel.fault GPU-1 6m40s-6m40s true xid_79",
		"accel.held GPU-1 10s-10s false ",
		"accel.held GPU-2 10s-10s false ",
		"accel.hold GPU-1 10s-7m0s true released 20s after xid_79",
		"accel.hold GPU-2 10s-7m0s false ",
		"accel.idle GPU-1 2m0s-4m50s false ",
		"accel.wait GPU-1 10s-1m10s false ",
		"accel.wait GPU-2 10s-7m0s false ",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("spans (-want +got):\n%s", diff)
	}
	wantAttrs := map[string]string{
		"hw.id": "GPU-1", "hw.type": "gpu", "hw.name": "gpu1", "hw.vendor": "nvidia", "hw.model": "H100",
		"accel.device.pci_address": "0000:1b:00.0", "k8s.container.name": "main",
		"accel.allocation.resources": "nvidia.com/gpu", "accel.allocation.shared": "false",
		"accel.allocation.start_observed": "true", "accel.allocation.end_observed": "true",
		"accel.health.state": "failed", "accel.health.action": "reset",
	}
	if diff := cmp.Diff(wantAttrs, devices[0].Attrs); diff != "" {
		t.Errorf("attributes (-want +got):\n%s", diff)
	}
	wantEvents := []otlptest.Event{
		{Name: "accel.first_activity", Time: at(70), Attrs: map[string]string{"accel.observed": "true"}},
		{Name: "accel.fault", Time: at(400), Attrs: map[string]string{
			"accel.fault.name": "xid_79", "accel.xid.code": "79", "accel.xid.sub": "unit",
			"accel.fault.detail": "GPU has fallen off the bus.", "accel.health.state": "failed", "accel.health.action": "reset",
		}},
	}
	if diff := cmp.Diff(wantEvents, devices[0].Events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if a := root[0].Attrs; a["accel.allocation.devices"] != "GPU-1,GPU-2" || a["accel.allocation.device_count"] != "2" || a["accel.allocation.start_observed"] != "true" {
		t.Errorf("the root has %v", a)
	}
}

// TestUnsampled: spans are dropped if the trace of the annotation is not sampled.
func TestUnsampled(t *testing.T) {
	var r otlptest.Receiver
	l := listen(t, "127.0.0.1:0")
	defer r.Serve(l, nil, nil)()
	g := newStage(t, trace.Options{Endpoint: endpoint(t, "http", l)})
	g.identity["a"] = trace.Identity{UID: "u", Context: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00", Final: true}
	g.play("a")
	g.until("the spans to be dropped", func() bool { return g.metric("accel_traces_spans_total", "unsampled") == 9 })
	if n := len(r.Spans()); n > 0 {
		t.Errorf("%d spans arrived", n)
	}
}

// TestUnreachable: spans are queued while the receiver is unreachable, and sent later.
func TestUnreachable(t *testing.T) {
	for _, scheme := range []string{"http", "grpc"} {
		t.Run(scheme, func(t *testing.T) {
			l := listen(t, "127.0.0.1:0")
			address := l.Addr().String()
			e := endpoint(t, scheme, l)
			l.Close()
			g := newStage(t, trace.Options{Endpoint: e})
			g.identity["a"] = trace.Identity{UID: "11111111-2222-3333-4444-555555555555", Final: true}
			g.play("a")
			g.until("failures", func() bool { return g.metric("accel_traces_batches_total", "failed") > 2 })
			if n := g.metric("accel_traces_queue_spans", ""); n != 9 {
				t.Errorf("%g spans queued", n)
			}
			var r otlptest.Receiver
			defer serve(&r, scheme, listen(t, address))()
			g.until("the spans", func() bool { return g.sent() == 9 && g.metric("accel_traces_queue_spans", "") == 0 })
			checkTrace(t, r.Spans())
			if !strings.Contains(g.log.String(), "A request with traces failed") || !strings.Contains(g.log.String(), "Traces are sent again") {
				t.Errorf("log:\n%s", g.log)
			}
		})
	}
}

// TestAnswers: the result of a span by the response of the receiver.
func TestAnswers(t *testing.T) {
	// The first response is that of the test case. Later requests are accepted.
	for name, c := range map[string]struct {
		over func(http.ResponseWriter)
		call func() (*collectorpb.ExportTraceServiceResponse, error)
		want string // the result of the first span
	}{
		"http busy":        {over: func(w http.ResponseWriter) { w.Header().Set("Retry-After", "0"); w.WriteHeader(429) }, want: "sent"},
		"http unavailable": {over: func(w http.ResponseWriter) { w.WriteHeader(503) }, want: "sent"},
		"http refused":     {over: func(w http.ResponseWriter) { http.Error(w, "no such tenant", http.StatusForbidden) }, want: "rejected"},
		"http redirect": {over: func(w http.ResponseWriter) {
			w.Header().Set("Location", "http://127.0.0.1:1/")
			w.WriteHeader(307)
		}, want: "rejected"},
		"http truncated": {over: func(w http.ResponseWriter) { w.Header().Set("Content-Length", "10"); w.WriteHeader(200) }, want: "sent"},
		"http partial": {over: func(w http.ResponseWriter) {
			reply, _ := proto.Marshal(&collectorpb.ExportTraceServiceResponse{PartialSuccess: &collectorpb.ExportTracePartialSuccess{RejectedSpans: 1, ErrorMessage: "one too many"}})
			w.Header().Set("Content-Type", "application/x-protobuf")
			w.Write(reply)
		}, want: "rejected"},
		"grpc unavailable": {call: func() (*collectorpb.ExportTraceServiceResponse, error) {
			return nil, status.Error(codes.Unavailable, "later")
		}, want: "sent"},
		"grpc full": {call: func() (*collectorpb.ExportTraceServiceResponse, error) {
			return nil, status.Error(codes.ResourceExhausted, "never")
		}, want: "rejected"},
		"grpc refused": {call: func() (*collectorpb.ExportTraceServiceResponse, error) {
			return nil, status.Error(codes.Unauthenticated, "who")
		}, want: "rejected"},
		"grpc partial": {call: func() (*collectorpb.ExportTraceServiceResponse, error) {
			return &collectorpb.ExportTraceServiceResponse{PartialSuccess: &collectorpb.ExportTracePartialSuccess{RejectedSpans: 1, ErrorMessage: "one too many"}}, nil
		}, want: "rejected"},
	} {
		t.Run(name, func(t *testing.T) {
			first := true
			r := otlptest.Receiver{
				HTTP: func(w http.ResponseWriter) bool {
					was := first && c.over != nil
					if first = false; was {
						c.over(w)
					}
					return was
				},
				GRPC: func() (*collectorpb.ExportTraceServiceResponse, error) {
					was := first && c.call != nil
					if first = false; was {
						return c.call()
					}
					return nil, nil
				},
			}
			scheme, _, _ := strings.Cut(name, " ")
			l := listen(t, "127.0.0.1:0")
			defer serve(&r, scheme, l)()
			g := newStage(t, trace.Options{Endpoint: endpoint(t, scheme, l)})
			g.identity["a"] = trace.Identity{UID: "u", Final: true}
			g.show(10, nil, record("a", "GPU-1", 10))
			g.until("the first span to be "+c.want, func() bool { return g.metric("accel_traces_spans_total", c.want) == 1 })
			if n := g.metric("accel_traces_batches_total", "failed"); n != 1 {
				t.Errorf("%g batches failed", n)
			}
			g.show(20, nil, record("a", "GPU-1", 10, working(15, 15)))
			g.until("the next span", func() bool {
				return len(r.Spans()) > 0 && g.total() == 2 && g.metric("accel_traces_queue_spans", "") == 0
			})
		})
	}
}

// TestHeaders: each request has the current headers of the file. The log does
// not contain them.
func TestHeaders(t *testing.T) {
	for _, scheme := range []string{"http", "grpc"} {
		t.Run(scheme, func(t *testing.T) {
			var r otlptest.Receiver
			l := listen(t, "127.0.0.1:0")
			defer serve(&r, scheme, l)()
			file := filepath.Join(t.TempDir(), "headers.yml")
			write := func(text string) {
				if err := os.WriteFile(file+".new", []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
				if err := os.Rename(file+".new", file); err != nil {
					t.Fatal(err)
				}
			}
			write("Authorization: Bearer one-secret\n")
			g := newStage(t, trace.Options{Endpoint: endpoint(t, scheme, l), HeadersFile: file})
			g.identity["a"] = trace.Identity{UID: "u", Final: true}
			g.show(10, nil, record("a", "GPU-1", 10))
			g.until("a span", func() bool { return g.sent() == 1 })
			write("authorization: Bearer another-secret\nx-tenant: team\n")
			g.show(20, nil, record("a", "GPU-1", 10, working(15, 15)))
			g.until("a second span", func() bool { return g.sent() == 2 })
			write("- Bearer third-secret\n")
			g.show(21, nil, record("a", "GPU-1", 10, working(15, 15)), record("a", "GPU-2", 21))
			g.until("a third span", func() bool { return g.sent() == 3 })
			h := r.Headers()
			if h[0]["authorization"] != "Bearer one-secret" || h[1]["authorization"] != "Bearer another-secret" || h[1]["x-tenant"] != "team" || h[2]["authorization"] != "Bearer another-secret" {
				t.Errorf("%v", h)
			}
			if text := g.log.String(); strings.Contains(text, "secret:") || strings.Contains(text, "-secret") || !strings.Contains(text, "The file of headers cannot be read again") {
				t.Errorf("log:\n%s", text)
			}
		})
	}
}
