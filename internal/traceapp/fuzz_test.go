package traceapp

import (
	"testing"

	"github.com/accel-exporter/accel-exporter/internal/traceproc"
)

// FuzzContext: whatever a pod is annotated with, its spans are made, and join a
// trace only where the annotation names one.
func FuzzContext(f *testing.F) {
	f.Add("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	f.Add(`{"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01","tracestate":"a=b"}`)
	f.Add("00-00000000000000000000000000000000-b7ad6b7169203331-01")
	f.Add("{")
	f.Fuzz(func(t *testing.T, context string) {
		s := traceproc.Span{Trace: "11111111111111111111111111111111", ID: "2222222222222222", Context: context, Name: "x"}
		of, parent, ok := identify(&s)
		if !ok || of.span.String() != s.ID || !of.trace.IsValid() {
			t.Fatalf("%v %v", of, ok)
		}
		if joined := parent.IsValid(); joined && parent.TraceID() != of.trace || !joined && of.trace.String() != s.Trace {
			t.Fatalf("trace %s, below %s", of.trace, parent.TraceID())
		}
		s.Parent = "3333333333333333"
		if _, inner, ok := identify(&s); !ok || inner.SpanID().String() != s.Parent || inner.TraceID() != of.trace {
			t.Fatalf("below %v", inner)
		}
	})
}
