package trace_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/judge/allocation"
	"github.com/accel-exporter/accel-exporter/internal/trace"
	"github.com/accel-exporter/accel-exporter/podmap"
)

// tracks updates a Tracker with the states of a test.
type tracks struct {
	t       *testing.T
	tracker *trace.Tracker
	events  []collector.Event
	id      trace.Identity
	spans   []trace.Span // since the previous call of want
}

func newTracks(t *testing.T) *tracks {
	r := &tracks{t: t, id: trace.Identity{UID: "u", Final: true}}
	r.tracker = trace.NewTracker("node-1", func(podmap.Pod, time.Time) trace.Identity { return r.id })
	return r
}

// update updates the tracker with the state at a time, in seconds after the start.
func (r *tracks) update(seconds int, change func(*allocation.History), all ...allocation.Record) {
	v := &allocation.History{Time: at(seconds), Complete: true, Records: all}
	if change != nil {
		change(v)
	}
	r.spans = append(r.spans, r.tracker.Update(v, r.events)...)
}

// want checks the spans since the previous call, without roots.
func (r *tracks) want(want ...string) {
	r.t.Helper()
	var got []string
	for _, s := range r.spans {
		if s.Name == "accel.allocation" {
			continue
		}
		text := fmt.Sprintf("%s %s@%s %s-%s", s.Pod.Name, s.Name, attr(s, "hw.id"), s.Start.Sub(start), s.End.Sub(start))
		for _, key := range []string{"accel.observed", "accel.allocation.end_observed", "accel.fault.detail"} {
			if v := attr(s, key); v != "" {
				text += " " + v
			}
		}
		got = append(got, text)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		r.t.Errorf("spans (-want +got):\n%s", diff)
	}
	r.spans = nil
}

func attr(s trace.Span, key string) string {
	for _, a := range s.Attrs {
		if string(a.Key) == key {
			return a.Value.String()
		}
	}
	return ""
}

// unknown makes it unknown whether the pod is active.
func unknown(l *allocation.Record) { l.IdleKnown, l.IdleSince = false, time.Time{} }

// found marks the start of the allocation as unobserved.
func found(l *allocation.Record) { l.After = time.Time{} }

func until(seconds int) func(*allocation.Record) {
	return func(l *allocation.Record) { l.Until = at(seconds) }
}

func fault(name string, seconds int) func(*allocation.Record) {
	return func(l *allocation.Record) {
		l.Faults = append(l.Faults, allocation.Fault{Name: name, Time: at(seconds)})
	}
}

// TestFaultWaitsForItsText: an Xid that NVML has reported without a text waits a
// moment for the report of the kernel log, and not longer. The end of the allocation
// ends the wait.
func TestFaultWaitsForItsText(t *testing.T) {
	r := newTracks(t)
	report := func(at time.Time, detail string) {
		r.events = []collector.Event{{Kind: collector.EventXid, Code: 79, Device: "GPU-1", Time: at, Detail: detail}}
	}
	report(at(310), "")
	r.update(311, nil, record("a", "GPU-1", 10, fault("xid_79", 310)))
	r.want()
	report(at(310), "fell off")
	r.update(311, nil, record("a", "GPU-1", 10, fault("xid_79", 310)))
	r.want("a accel.fault@GPU-1 5m10s-5m10s fell off")
	report(at(410), "")
	r.update(411, nil, record("a", "GPU-1", 10, fault("xid_79", 410)))
	r.want()
	r.update(412, nil, record("a", "GPU-1", 10, fault("xid_79", 410)))
	r.want("a accel.fault@GPU-1 6m50s-6m50s")
	report(at(510), "")
	r.update(511, nil, record("a", "GPU-1", 10, fault("xid_79", 510), until(511)))
	r.want("a accel.fault@GPU-1 8m30s-8m30s")
}

// TestManyFaults: the spans of the faults of one device are limited, and the rest is
// counted.
func TestManyFaults(t *testing.T) {
	r := newTracks(t)
	var all []func(*allocation.Record)
	for i := range 50 {
		all = append(all, fault(fmt.Sprint("xid_", i), 10))
	}
	r.update(10, nil, record("a", "GPU-1", 10, all...))
	r.update(20, nil)
	r.update(40, nil)
	ids := map[string]bool{}
	for _, s := range r.spans {
		ids[s.ID.String()] = true
	}
	last := r.spans[len(r.spans)-1]
	if len(ids) != len(r.spans) || len(r.spans) != 32+3 || attr(last, "accel.faults_omitted") != "18" || last.Error != "released 10s after xid_49" {
		t.Errorf("%d spans, %d IDs: %+v", len(r.spans), len(ids), last)
	}
}

// TestUnknownState: an allocation does not end while its state is unknown.
func TestUnknownState(t *testing.T) {
	for name, change := range map[string]func(*allocation.History){
		"incomplete list": func(v *allocation.History) { v.Complete = false },
		"missing device":  func(v *allocation.History) { v.Unresolved = map[podmap.Pod]bool{{Namespace: "ml", Name: "a"}: true} },
		"over the limit":  func(v *allocation.History) { v.Omitted = map[string]bool{"GPU-1": true} },
	} {
		t.Run(name, func(t *testing.T) {
			r := newTracks(t)
			r.update(10, nil, record("a", "GPU-1", 10, found))
			for s := 20; s < 5000; s += 100 {
				r.update(s, change)
			}
			r.update(5000, nil, record("a", "GPU-1", 4990, found))
			r.want() // the kubelet answers again and lists the pod
			r.update(5001, change)
			r.update(5010, nil)
			r.update(5030, nil)
			r.want("a accel.device@GPU-1 10s-1h23m30s false")
		})
	}
}

// TestSuccessor: a pod that is listed again after a complete list without it has a new
// allocation.
func TestSuccessor(t *testing.T) {
	r := newTracks(t)
	r.update(10, nil, record("a", "GPU-1", 10), record("a", "GPU-2", 10))
	r.update(20, nil)
	r.update(30, nil, record("a", "GPU-1", 30), record("a", "GPU-3", 30))
	r.want("a accel.wait@GPU-1 10s-25s true", "a accel.device@GPU-1 10s-25s true", "a accel.wait@GPU-2 10s-20s true", "a accel.device@GPU-2 10s-20s true")
	// The state without the pod may be skipped.
	r.update(60, nil, record("a", "GPU-1", 50), record("a", "GPU-3", 30))
	r.want("a accel.wait@GPU-1 30s-45s true", "a accel.device@GPU-1 30s-45s true")
}

// TestUnobservedStart: an allocation that precedes the exporter has no wait. An
// earlier fault does not belong to it.
func TestUnobservedStart(t *testing.T) {
	r := newTracks(t)
	r.update(100, nil, record("a", "GPU-1", 10, found, idleSince(11)))
	r.update(200, nil, record("a", "GPU-1", 10, found, func(l *allocation.Record) { l.Last = at(190) }, fault("xid_31", 5)))
	r.want("a accel.idle@GPU-1 11s-3m10s true")
}

// TestActivityUnknown: if activity is unknown for more than a minute, the stage ends
// when it was last known. A device that is not idle is not active for that reason.
func TestActivityUnknown(t *testing.T) {
	r := newTracks(t)
	r.update(10, nil, record("a", "GPU-1", 10, working(10, 10)))
	r.update(80, nil, record("a", "GPU-1", 10, working(10, 10), idleSince(10)))
	r.spans = nil
	r.update(130, nil, record("a", "GPU-1", 10, working(10, 10), unknown))
	r.want()
	r.update(150, nil, record("a", "GPU-1", 10, working(10, 10), unknown))
	r.want("a accel.idle@GPU-1 10s-1m20s false")
	r.update(160, nil, record("a", "GPU-1", 10, working(10, 10)))
	r.update(300, nil, record("a", "GPU-1", 10, working(10, 10), idleSince(240)))
	r.want()
}

// TestIdentity: spans wait for the UID of their pod for a limited time. Without it the
// start of the allocation identifies the trace.
func TestIdentity(t *testing.T) {
	r := newTracks(t)
	r.id = trace.Identity{}
	r.update(10, nil, record("a", "GPU-1", 10))
	if len(r.spans) > 0 {
		t.Errorf("%+v", r.spans)
	}
	r.id = trace.Identity{UID: "u", Context: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", Final: true}
	r.update(12, nil, record("a", "GPU-1", 10))
	if len(r.spans) != 1 || r.spans[0].Pod.UID != "u" || r.spans[0].Trace.String() != "0af7651916cd43dd8448eb211c80319c" || r.spans[0].Parent.SpanID().String() != "b7ad6b7169203331" {
		t.Fatalf("%+v", r.spans)
	}
	r.id = trace.Identity{}
	traces := map[string]bool{}
	for _, since := range []int{100, 200} {
		r.spans = nil
		for _, s := range []int{0, 10, 20, 40} {
			var all []allocation.Record
			if s < 20 {
				all = append(all, record("b", "GPU-1", since))
			}
			r.update(since+s, nil, all...)
		}
		i := slices.IndexFunc(r.spans, func(s trace.Span) bool { return s.Pod.Name == "b" && s.Name == "accel.device" })
		if i < 0 || r.spans[i].Pod.UID != "" {
			t.Fatalf("%+v", r.spans)
		}
		traces[r.spans[i].Trace.String()] = true
	}
	if len(traces) != 2 {
		t.Errorf("%d traces", len(traces))
	}
}

const outerTrace, outerSpan = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"

// contexts are annotations, and whether they name a trace.
var contexts = map[string]bool{
	"00-" + outerTrace + "-" + outerSpan + "-01":                   true,
	`{"traceparent":"00-` + outerTrace + "-" + outerSpan + `-01"}`: true, // Tekton's
	"hello": false,
	"00-00000000000000000000000000000000-0000000000000000-01": false,
	`{"traceparent":5}`: false,
	`{"traceparent":"00-` + outerTrace + "-" + outerSpan + "-01": false,
}

// TestContext: spans join the trace of a valid annotation. An invalid one is ignored.
func TestContext(t *testing.T) {
	for context, joined := range contexts {
		r := newTracks(t)
		r.id.Context = context
		r.update(10, nil, record("a", "GPU-1", 10))
		root := r.spans[0]
		if root.Parent.IsValid() != joined || joined && (root.Trace.String() != outerTrace || root.Parent.SpanID().String() != outerSpan) {
			t.Errorf("%s: the root has the trace %s and the parent %s", context, root.Trace, root.Parent.SpanID())
		}
	}
}

// FuzzContext: for any annotation of the pod, spans have valid IDs.
func FuzzContext(f *testing.F) {
	for context := range contexts {
		f.Add(context)
	}
	f.Fuzz(func(t *testing.T, context string) {
		r := newTracks(t)
		r.id.Context = context
		r.update(10, nil, record("a", "GPU-1", 10))
		r.update(20, nil, record("a", "GPU-1", 10, working(15, 15)))
		root, child := r.spans[0], r.spans[1]
		for _, s := range r.spans {
			if !s.Trace.IsValid() || !s.ID.IsValid() || s.Trace != root.Trace {
				t.Errorf("%+v", s)
			}
		}
		if child.Parent.SpanID() != root.ID || child.Parent.TraceID() != root.Trace || root.Parent.IsValid() && root.Trace != root.Parent.TraceID() {
			t.Errorf("%+v below %+v", child, root)
		}
	})
}
