package trace

import (
	"testing"
	"time"

	"github.com/accel-exporter/accel-exporter/internal/judge/allocation"
	"github.com/accel-exporter/accel-exporter/internal/trace/lifecycle"
	"github.com/accel-exporter/accel-exporter/podmap"
)

// FuzzEndpoint: an accepted endpoint has a host. It has a path only for HTTP.
func FuzzEndpoint(f *testing.F) {
	for _, s := range []string{"http://h", "https://[::1]:4318/x", "grpc://h:1", "grpcs://u:p@h", "ftp://h", "http:///x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		e, err := ParseEndpoint(s)
		if err == nil && (e.Host == "" || e.GRPC && e.Path != "" || !e.GRPC && e.Path == "") {
			t.Fatalf("%q: %+v", s, e)
		}
	})
}

// FuzzContext: for any annotation of the pod, spans have valid IDs. They join another
// trace only if the annotation names a valid one.
func FuzzContext(f *testing.F) {
	f.Add("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	f.Add(`{"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01","tracestate":"a=b"}`)
	f.Add("00-00000000000000000000000000000000-b7ad6b7169203331-01")
	f.Add("{")
	f.Fuzz(func(t *testing.T, context string) {
		b := NewBuilder("node-1", func(podmap.Pod, time.Time) Identity { return Identity{UID: "u", Context: context, Final: true} })
		record := &allocation.Record{Device: "GPU-1"}
		spans := b.Write(at(20), []lifecycle.Change{
			{Allocation: 1, Kind: lifecycle.Allocated, Time: at(10), State: record}, {Allocation: 1, Kind: lifecycle.Released, Time: at(20), State: record},
		})
		if len(spans) != 3 {
			t.Fatalf("%d spans", len(spans))
		}
		started, device, root := spans[0], spans[1], spans[2]
		outer := parseContext(context)
		if root.Parent.SpanID() != outer.SpanID() || outer.IsValid() && root.Trace != outer.TraceID() || !outer.IsValid() && root.Trace != traceID(joinKey(joinKey("uid", "u"), 0)) {
			t.Fatalf("%+v below %v", root, outer)
		}
		for _, s := range spans {
			if !s.Trace.IsValid() || !s.ID.IsValid() || s.Trace != root.Trace {
				t.Fatalf("%+v", s)
			}
		}
		if started.Parent.SpanID() != device.ID || device.Parent.SpanID() != root.ID || device.Parent.TraceID() != root.Trace || outer.IsValid() && device.Parent.TraceFlags() != outer.TraceFlags() {
			t.Fatalf("%+v below %+v below %+v", started, device, root)
		}
	})
}
