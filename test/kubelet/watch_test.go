package kubelet_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"

	"github.com/accel-exporter/accel-exporter/podmap"
)

// watch is a Watcher of a node's kubelet with every Map that it has shown.
type watch struct {
	t *testing.T
	n *node
	w *podmap.Watcher

	mu   sync.Mutex
	maps []*podmap.Map
}

// watch starts a Watcher that knows its own pod, the static one unless set
// otherwise, and
// asks as often as the kubelet's limit on calls lets it.
func (n *node) watch(opts podmap.Options) *watch {
	n.t.Helper()
	opts.Socket = n.path("pod-resources/kubelet.sock")
	if opts.Interval == 0 {
		opts.Interval = 100 * time.Millisecond
	}
	// A machine may be slow. A kubelet that ends breaks the connection, which
	// takes no time-out.
	opts.Timeout = guard
	if opts.Self == (podmap.Pod{}) {
		opts.Self = selfPod
	}
	w := &watch{t: n.t, n: n, w: podmap.New(opts)}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { w.w.Run(ctx) })
	running.Go(func() {
		for {
			select {
			case <-w.w.Changed():
				w.mu.Lock()
				w.maps = append(w.maps, w.w.Latest())
				w.mu.Unlock()
			case <-ctx.Done():
				return
			}
		}
	})
	n.t.Cleanup(func() { cancel(); running.Wait() })
	return w
}

// shown returns the Maps shown since the last call.
func (w *watch) shown() []*podmap.Map {
	w.mu.Lock()
	defer w.mu.Unlock()
	maps := w.maps
	w.maps = nil
	return maps
}

// await waits for this Map: its state, then a line for each holder
// in order of resource and device.
func (w *watch) await(when string, lines ...string) *podmap.Map {
	w.t.Helper()
	var m *podmap.Map
	defer func() {
		if w.t.Failed() {
			w.t.Logf("%s (-want +got):\n%s\nstatus: %+v", when, cmp.Diff(lines, formatted(m)), w.w.Status())
		}
	}()
	w.n.await(when, func() bool {
		m = w.w.Latest()
		return slices.Equal(formatted(m), lines)
	})
	return m
}

// next waits for two more lists, the second of which was asked for after this
// was called, and returns the Map.
func (w *watch) next() *podmap.Map {
	w.t.Helper()
	ok := func() uint64 { return w.w.Status().Calls[podmap.OutcomeOK] }
	before := ok()
	w.n.await("the kubelet has listed twice more", func() bool { return ok() >= before+2 })
	return w.w.Latest()
}

// awaitAllocatable waits until the kubelet answers, from now on, that it can allocate
// these devices. An earlier answer may be that of a kubelet that has ended: a static pod
// that a kubelet admits before the device plugin has registered fails, and is not
// admitted again.
func (w *watch) awaitAllocatable(when string, want ...podmap.Allocatable) {
	w.t.Helper()
	asked := time.Now()
	var got []podmap.Allocatable
	defer func() {
		if w.t.Failed() {
			w.t.Logf("allocatable %s (-want +got):\n%s", when, cmp.Diff(want, got))
		}
	}()
	w.n.await("allocatable "+when, func() bool {
		m := w.w.Latest()
		got = m.Allocatable
		return m.AllocatableTime.After(asked) && (cmp.Equal(got, want, cmp.Transformer("empty", func(l []podmap.Allocatable) []podmap.Allocatable {
			return append([]podmap.Allocatable{}, l...)
		})) || len(got)+len(want) == 0)
	})
}

// formatted writes a Map as its state and a line for each holder.
func formatted(m *podmap.Map) []string {
	lines := []string{string(m.State)}
	for _, h := range m.Allocations {
		lines = append(lines, line(h))
	}
	for _, h := range m.Superseded {
		lines = append(lines, "superseded: "+line(h))
	}
	return lines
}

func line(h podmap.Allocation) string {
	s := fmt.Sprintf("%s: %s %s", h.DeviceID, strings.TrimSuffix(h.Pod.Name, "-"+nodeName), strings.Join(h.Containers, ","))
	for _, f := range []struct {
		is   bool
		name string
	}{{h.Shared, "shared"}, {h.Kept, "kept"}, {h.Contested, "contested"}} {
		if f.is {
			s += " " + f.name
		}
	}
	return s
}

// raw calls the kubelet without a Watcher.
func (n *node) raw() podresources.PodResourcesListerClient {
	n.t.Helper()
	conn, err := grpc.NewClient("unix://"+n.path("pod-resources/kubelet.sock"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	must(n.t, err)
	n.t.Cleanup(func() { conn.Close() })
	return podresources.NewPodResourcesListerClient(conn)
}
