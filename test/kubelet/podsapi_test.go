package kubelet_test

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/accel-exporter/accel-exporter/podmap"
	"github.com/accel-exporter/accel-exporter/podmap/kube"
)

// TestPodsAPI: a kubelet of 1.37 reports the UIDs of its pods without an API server, and
// when its list is complete: no wait decides on a pod that ended while it was away.
func TestPodsAPI(t *testing.T) {
	t.Parallel()
	n := startNode(t)
	pods, err := kube.New(kube.Options{Kubelet: n.path("pods-api/pods-api.sock"), Labels: []string{"team"}})
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		pods.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	w := n.watch(podmap.Options{Settle: time.Hour, Ready: pods.Ready})
	p := n.serve(gpu, "gpu", devices(gpus(2)...)...)
	w.awaitAllocatable("at first", podmap.Allocatable{Resource: gpu, IDs: gpus(2)})
	one, two := simple("one", gpu, 1), simple("two", gpu, 1)
	one.team = "speech"
	n.create(one)
	w.await("at first", "fresh", allocated(0, "one main"))
	n.create(two)
	w.await("with a second pod", "fresh", allocated(0, "one main"), allocated(1, "two main"))

	var known kube.Pod
	n.await("the kubelet reports the pods", func() bool {
		known, _ = pods.Latest().Pod("ml", "one-"+nodeName)
		_, both := pods.Latest().Pod("ml", "two-"+nodeName)
		return known.UID != "" && both && pods.Latest().State == kube.StateFresh
	})
	if known.Labels["team"] != "speech" {
		t.Errorf("%+v, %+v", known, pods.Status())
	}
	if all := fmt.Sprintf("%+v %+v", pods.Latest(), pods.Status()); strings.Contains(all, secret) {
		t.Errorf("the environment of a pod is kept: %s", all)
	}

	n.awaitRunning(one, two, self)
	n.end(syscall.SIGKILL)
	w.await("ended", "stale", allocated(0, "one main"), allocated(1, "two main"))
	n.remove("two")
	n.again(p)
	w.await("the kubelet has its pods again", "fresh", allocated(0, "one main"))
	n.await("the pods are known again", func() bool {
		old, ok := pods.Latest().Pod("ml", "two-"+nodeName)
		return pods.Latest().State == kube.StateFresh && ok && !old.Deleted.IsZero()
	})
}
