package kubelet_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/accel-exporter/accel-exporter/podmap"
)

// steady checks of the Maps shown since the last call that each reports every
// holder that m has, all that time, whatever the kubelet listed.
func (w *watch) steady(when string, m *podmap.Map) {
	w.t.Helper()
	seen := map[podmap.State]int{}
	var pods []string
	for _, got := range append(w.shown(), w.w.Latest()) {
		seen[got.State]++
		pods = append(pods, fmt.Sprint(got.Pods))
		if !slices.EqualFunc(m.Allocations, got.Allocations, sameAllocation) || len(got.Superseded) > 0 {
			w.t.Errorf("%s, %s:\n%s\nwant\n%s", when, got.Time, strings.Join(formatted(got), "\n"), strings.Join(formatted(m), "\n"))
			return
		}
	}
	w.t.Logf("%s: states %v, pods in the lists %s", when, seen, strings.Join(slices.Compact(pods), " "))
}

func sameAllocation(a, b podmap.Allocation) bool {
	return a.Pod == b.Pod && a.DeviceID == b.DeviceID && a.Since.Equal(b.Since) && a.After.Equal(b.After) &&
		slices.Equal(a.Containers, b.Containers) && !b.Contested
}

// awaitRunning waits until the main containers of the pods run.
func (n *node) awaitRunning(pods ...pod) {
	n.t.Helper()
	n.await("all pods run", func() bool {
		return !slices.ContainsFunc(pods, func(p pod) bool { return !n.cri.runs(p.name, "main") })
	})
}

// again starts the kubelet and the plug-in, which has to register again.
func (n *node) again(p *plugin) {
	n.t.Helper()
	n.start()
	p.start()
}

// A kubelet that is restarted twice, as by an upgrade: no holder is lost for a
// moment, and the second time the device of a pod that was removed meanwhile
// goes to another.
func TestRestart(t *testing.T) {
	t.Parallel()
	pods := []pod{simple("one", gpu, 1), simple("two", gpu, 2)}
	// Nothing but evidence releases anything in this time.
	n := startNode(t)
	w := n.watch(podmap.Options{Settle: time.Hour})
	p := n.serve(gpu, "gpu", devices(gpus(3)...)...)
	w.awaitAllocatable("at first", podmap.Allocatable{Resource: gpu, IDs: gpus(3)})
	n.create(pods[0])
	w.await("at first", "fresh", allocated(0, "one main"))
	n.awaitRunning(pods[0], self)
	n.create(pods[1])
	want := []string{"fresh", allocated(0, "one main"), allocated(1, "two main"), allocated(2, "two main")}
	m := w.await("with a second pod", want...)
	n.await("it runs", func() bool { return n.cri.runs("two", "main") })
	w.shown()

	for _, times := range []string{"the first time", "the second time"} {
		n.end(syscall.SIGTERM)
		w.await("ended "+times, append([]string{"stale"}, want[1:]...)...)
		if times == "the second time" {
			must(t, os.RemoveAll(n.path("pod-resources")))
			n.await("the socket is found missing", func() bool { return w.w.Status().Last == podmap.OutcomeNoSocket })
		}
		n.again(p)
		w.awaitAllocatable("back "+times, podmap.Allocatable{Resource: gpu, IDs: gpus(3)})
		w.await("back "+times, want...)
		w.steady("restarted "+times, m)
	}

	n.end(syscall.SIGTERM)
	n.remove("two")
	n.again(p)
	w.awaitAllocatable("without a pod", podmap.Allocatable{Resource: gpu, IDs: gpus(3)})
	w.await("a pod that ended while the kubelet was away",
		"unconfirmed", allocated(0, "one main"), allocated(1, "two main kept"), allocated(2, "two main kept"))
	n.await("its containers are stopped", func() bool { return !n.cri.runs("two", "main") })
	n.create(simple("heir", gpu, 1))
	w.await("another that got one of its devices",
		"unconfirmed", allocated(0, "one main"), allocated(1, "heir main"), allocated(2, "two main kept"))
}
