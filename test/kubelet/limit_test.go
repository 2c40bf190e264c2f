package kubelet_test

import (
	"context"
	"sync"
	"testing"

	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"

	"github.com/accel-exporter/accel-exporter/podmap"
)

// Answers larger than a Watcher takes: the limit is raised as far as it may
// be, and the previous Map stays.
func TestMessageLimit(t *testing.T) {
	t.Parallel()
	n := startNode(t)
	n.serve(gpu, "gpu", devices(gpus(20)...)...)
	grows := n.watch(podmap.Options{Message: 16})
	narrow := n.watch(podmap.Options{Message: 16, MaxMessage: 512})
	small := []string{"fresh"}
	grows.awaitAllocatable("with 20 devices", podmap.Allocatable{Resource: gpu, IDs: gpus(20)})
	grows.await("before any pod has a device", small...)
	narrow.await("before any pod has a device", small...)
	never := n.watch(podmap.Options{Message: 1, MaxMessage: 1}) // a list of no pods would fit
	never.await("where nothing may come in", "unreachable")

	n.create(simple("one", gpu, 1))
	grows.await("one device", append(small, allocated(0, "one main"))...)
	narrow.await("one device", append(small, allocated(0, "one main"))...)
	n.create(simple("many", gpu, 19))
	want := append(small, allocated(0, "one main"))
	for i := 1; i < 20; i++ {
		want = append(want, allocated(i, "many main"))
	}
	grows.await("20 devices", want...)
	narrow.await("20 devices", "stale", allocated(0, "one main"))
	for _, c := range []struct {
		name  string
		w     *watch
		limit func(int) bool
		last  podmap.Outcome
	}{
		{"grows", grows, func(l int) bool { return l > 512 && l < 16<<10 }, podmap.OutcomeOK},
		{"narrow", narrow, func(l int) bool { return l == 512 }, podmap.OutcomeTooLarge},
		{"never", never, func(l int) bool { return l == 1 }, podmap.OutcomeTooLarge},
	} {
		if s := c.w.w.Status(); !c.limit(s.MessageLimit) || s.Last != c.last || s.Connections != 1 {
			t.Errorf("%s: %+v", c.name, s)
		}
	}
}

// Other clients of the socket use up the kubelet's limit on calls.
func TestRateLimit(t *testing.T) {
	t.Parallel()
	want := []string{allocated(0, "one main")}
	n, _, w, m := settled(t, podmap.Options{}, 1, []pod{simple("one", gpu, 1)}, want)
	c := n.raw()
	ctx, cancel := context.WithCancel(t.Context())
	var hammers sync.WaitGroup
	defer hammers.Wait()
	defer cancel()
	// So many at once exceed the limit on a machine too that does little in a
	// second.
	for range 64 {
		hammers.Go(func() {
			for ctx.Err() == nil {
				c.GetAllocatableResources(ctx, &podresources.AllocatableResourcesRequest{})
			}
		})
	}
	n.await("a call is refused twice", func() bool { return w.w.Status().Calls[podmap.OutcomeRateLimited] > 0 })
	cancel()
	hammers.Wait()
	w.await("when the others are quiet", append([]string{"fresh"}, want...)...)
	w.steady("under the rate limit", m)
	if s := w.w.Status(); s.Connections != 1 || s.Calls[podmap.OutcomeTooLarge] != 0 {
		t.Errorf("status: %+v", s)
	}
}
