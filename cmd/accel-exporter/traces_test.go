package main

import (
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/accel-exporter/accel-exporter/internal/trace"
	"github.com/accel-exporter/accel-exporter/internal/trace/otlptest"
	"github.com/accel-exporter/accel-exporter/podmap"
	"github.com/accel-exporter/accel-exporter/podmap/proc"
)

// receive starts a receiver and returns its address. While away is set, it refuses
// requests and counts them.
func receive(t *testing.T, away *atomic.Bool, requests *atomic.Int64) (*otlptest.Receiver, string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &otlptest.Receiver{HTTP: func(w http.ResponseWriter) bool {
		refused := away.Load()
		if refused {
			requests.Add(1)
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		return refused
	}}
	t.Cleanup(r.Serve(l, nil))
	return r, l.Addr().String()
}

// spanOf waits for a span by its name, pod and device, and returns it.
func spanOf(n *node, r *otlptest.Receiver, name, pod, device string) otlptest.Span {
	n.t.Helper()
	var found otlptest.Span
	n.poll(func() bool {
		all := r.Spans()
		i := slices.IndexFunc(all, func(s otlptest.Span) bool {
			return s.Name == name && s.Resource["k8s.pod.name"] == pod && (device == "" || s.Attrs["hw.id"] == device)
		})
		if i >= 0 {
			found = all[i]
		}
		return i >= 0
	}, func() string { return fmt.Sprintf("%s of %s on %s", name, pod, device) })
	return found
}

// TestTraces: the spans of a pod on a GPU, as a receiver gets them: start, first
// activity, an Xid, the end. The receiver is away at first.
func TestTraces(t *testing.T) {
	t.Parallel()
	var away atomic.Bool
	away.Store(true)
	var refused atomic.Int64
	r, address := receive(t, &away, &refused)
	n := startPods(t, scenario, nil, often, "--otlp.endpoint=http://"+address, "--kubernetes.node=node-1")
	free := allocationsOf(t, n.until(`^accel_podmap_state\{state="fresh"\} 1$`, `^accel_device_up\{.*\} 1$`, kernelLogRead))["free"].device
	n.sim("inject", "pod-start", "ml/first-0", "gpu:7", "--pid=81001", "--memory=2048", "--load=0.6")
	n.until(podDevice{free, "ml/first-0"}.has("info", "1"))
	n.poll(func() bool { return refused.Load() > 0 }, func() string { return "no request" })

	away.Store(false)
	root := spanOf(n, r, "accel.allocation", "first-0", "")
	if root.Attrs["accel.allocation.start_observed"] != "true" || root.Resource["k8s.node.name"] != "node-1" || root.Attrs["accel.allocation.devices"] != free {
		t.Errorf("%+v", root)
	}
	if found := spanOf(n, r, "accel.allocation", "llm-0", ""); found.Attrs["accel.allocation.start_observed"] != "false" {
		t.Errorf("an allocation from before the start: %+v", found)
	}
	n.until(podDevice{free, "ml/first-0"}.has("last_activity_timestamp_seconds", "[1-9].*"))
	wait := spanOf(n, r, "accel.wait", "first-0", free)

	n.sim("inject", "xid", "79", "7")
	fault := spanOf(n, r, "accel.fault", "first-0", free)
	if fault.Attrs["accel.xid.code"] != "79" || fault.Status != tracepb.Status_STATUS_CODE_ERROR {
		t.Errorf("%+v", fault)
	}
	n.sim("inject", "pod-end", "first-0")
	end := spanOf(n, r, "accel.device", "first-0", free)
	if end.Status != tracepb.Status_STATUS_CODE_ERROR {
		t.Errorf("%+v", end)
	}
	for _, s := range []otlptest.Span{wait, fault, end} {
		if s.Trace != root.Trace || s.Parent != root.ID {
			t.Errorf("%+v", s)
		}
	}
	for _, s := range r.Spans() {
		if s.Name == "accel.device" && s.Resource["k8s.pod.name"] != "first-0" {
			t.Errorf("the allocation of %s ended too early", s.Resource["k8s.pod.name"])
		}
	}
	if err := n.stop(); err != nil {
		t.Error(err)
	}
}

// TestIdentifier: the UID of a pod is read from the names of directories, where
// exactly one has the pod's name.
func TestIdentifier(t *testing.T) {
	const one, two = "6ba7b810-9dad-11d1-80b4-00c04fd430c8", "6ba7b811-9dad-11d1-80b4-00c04fd430c8"
	pod := podmap.Pod{Namespace: "ml", Name: "a"}
	for _, c := range []struct {
		dirs []string
		want trace.Identity
	}{
		{[]string{"ml_b_" + two, "pods", "ml_a_x_y"}, trace.Identity{}},
		{[]string{"ml_a_" + one, "ml_a_" + two}, trace.Identity{}},
		{[]string{"ml_a_" + one, "ml_b_" + two}, trace.Identity{UID: one, Final: true}},
	} {
		synctest.Test(t, func(t *testing.T) {
			w, found := &identifier{dirs: proc.NewPodDirs(func() ([]string, error) { return c.dirs, nil })}, time.Now()
			time.Sleep(time.Second)
			for _, ask := range []struct {
				found time.Time
				want  trace.Identity
			}{
				{found, trace.Identity{}}, // nothing is listed yet
				{found, c.want},
				{time.Now(), trace.Identity{}}, // an older listing may have an earlier pod
			} {
				if got := w.identify(pod, ask.found); got != ask.want {
					t.Errorf("%v: %+v, want %+v", c.dirs, got, ask.want)
				}
				synctest.Wait()
			}
		})
	}
}
