// Package traces tests what is sent against the OpenTelemetry collector's own
// receiver.
package traces

import (
	"context"
	"log/slog"
	"net"
	"slices"
	"testing"
	"time"

	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/judge/allocation"
	"github.com/accel-exporter/accel-exporter/internal/trace"
	"github.com/accel-exporter/accel-exporter/internal/trace/lifecycle"
	"github.com/accel-exporter/accel-exporter/podmap"
)

// receive runs the collector's receiver on free ports. It returns what arrives
// and the endpoints.
func receive(t *testing.T) (sink *consumertest.TracesSink, endpoints map[string]string) {
	t.Helper()
	endpoints = map[string]string{}
	protocols := map[string]any{}
	for _, name := range []string{"http", "grpc"} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
		endpoints[name] = name + "://" + l.Addr().String()
		protocols[name] = map[string]any{"endpoint": l.Addr().String()}
	}
	factory := otlpreceiver.NewFactory()
	config := factory.CreateDefaultConfig()
	if err := confmap.NewFromStringMap(map[string]any{"protocols": protocols}).Unmarshal(config); err != nil {
		t.Fatal(err)
	}
	sink = new(consumertest.TracesSink)
	r, err := factory.CreateTraces(t.Context(), receivertest.NewNopSettings(factory.Type()), config, sink)
	if err == nil {
		err = r.Start(t.Context(), componenttest.NewNopHost())
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return sink, endpoints
}

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// spans returns the spans of a pod on a GPU with an Xid.
func spans() []trace.Span {
	tracker := lifecycle.New()
	builder := trace.NewBuilder("node-1", func(podmap.Pod, time.Time) trace.Identity {
		return trace.Identity{UID: "11111111-2222-3333-4444-555555555555", Final: true}
	})
	var out []trace.Span
	update := func(seconds int, all ...allocation.Record) {
		now := start.Add(time.Duration(seconds) * time.Second)
		events := []collector.Event{{Kind: collector.EventXid, Code: 79, Device: "GPU-1", Time: start.Add(30 * time.Second), Detail: "GPU has fallen off the bus."}}
		records := tracker.Update(&allocation.History{Time: now, Complete: true, Records: all}, events)
		out = append(out, builder.Write(now, records)...)
	}
	life := allocation.Record{
		Pod: podmap.Pod{Namespace: "ml", Name: "a"}, Device: "GPU-1", Class: collector.GPU, Vendor: "nvidia",
		Since: start, After: start.Add(-time.Second), First: start.Add(5 * time.Second), Last: start.Add(5 * time.Second), IdleKnown: true,
	}
	update(10, life)
	life.Faults = []allocation.Fault{{Name: "xid_79", Time: start.Add(30 * time.Second)}}
	update(31, life)
	update(40)
	update(60)
	return out
}

// TestCollector: the collector's receiver takes the spans over both protocols
// and decodes their content.
func TestCollector(t *testing.T) {
	for _, protocol := range []string{"http", "grpc"} {
		t.Run(protocol, func(t *testing.T) {
			sink, endpoints := receive(t)
			endpoint, err := trace.ParseEndpoint(endpoints[protocol])
			if err != nil {
				t.Fatal(err)
			}
			sender, err := trace.NewSender(trace.Options{
				Endpoint: endpoint, Version: "1.2.3", Host: "host-1", Node: "node-1", Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
			})
			if err != nil {
				t.Fatal(err)
			}
			sent := spans()
			sender.Send(sent...)
			sender.Close()
			if n := sink.SpanCount(); n != len(sent) {
				t.Fatalf("%d of %d spans arrived", n, len(sent))
			}
			check(t, sink)
		})
	}
}

func check(t *testing.T, sink *consumertest.TracesSink) {
	t.Helper()
	var names []string
	for _, batch := range sink.AllTraces() {
		for _, of := range batch.ResourceSpans().All() {
			if pod, _ := of.Resource().Attributes().Get("k8s.pod.uid"); pod.Str() != "11111111-2222-3333-4444-555555555555" {
				t.Errorf("resource %v", of.Resource().Attributes().AsRaw())
			}
			for _, scope := range of.ScopeSpans().All() {
				for _, span := range scope.Spans().All() {
					names = append(names, span.Name())
					if span.Name() == "accel.fault" {
						checkFault(t, span)
					}
				}
			}
		}
	}
	slices.Sort(names)
	if want := []string{"accel.allocation", "accel.fault", "accel.held", "accel.hold", "accel.wait"}; !slices.Equal(names, want) {
		t.Errorf("spans %q, want %q", names, want)
	}
}

func checkFault(t *testing.T, span ptrace.Span) {
	t.Helper()
	code, _ := span.Attributes().Get("accel.xid.code")
	if code.Int() != 79 || span.Status().Code() != ptrace.StatusCodeError || !span.StartTimestamp().AsTime().Equal(start.Add(30*time.Second)) {
		t.Errorf("%v at %v", span.Attributes().AsRaw(), span.StartTimestamp())
	}
}
