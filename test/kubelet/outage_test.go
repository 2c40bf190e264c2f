package kubelet_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/accel-exporter/accel-exporter/podmap"
)

// A kubelet that starts while the API server is down answers, for as long as
// that lasts, that there are static pods only. Every container goes on.
func TestAPIServerDown(t *testing.T) {
	t.Parallel()
	const settle = time.Second
	n := newNode(t)
	api := newAPI(n)
	n.start()
	api.up()
	w := n.watch(podmap.Options{Settle: settle, Self: podmap.Pod{Namespace: "ml", Name: self.name}})
	p := n.serve(gpu, "gpu", devices(gpus(4)...)...)
	w.awaitAllocatable("at first", podmap.Allocatable{Resource: gpu, IDs: gpus(4)})
	n.create(simple("static", gpu, 1))
	w.await("before this exporter is listed", "unconfirmed", allocated(0, "static main"))
	api.create(self, simple("train", gpu, 2))
	want := []string{allocated(0, "static main"), allocated(1, "train main"), allocated(2, "train main")}
	m := w.await("at first", append([]string{"fresh"}, want...)...)
	w.shown()

	n.end(syscall.SIGKILL)
	api.down()
	n.again(p)
	kept := []string{"unconfirmed", want[0], want[1] + " kept", want[2] + " kept"}
	w.await("without the API server", kept...)
	listed := w.w.Latest().Time
	n.await("more time has passed than a list takes to settle", func() bool {
		return w.w.Latest().Time.Sub(listed) > 3*settle
	})
	w.await("without the API server for longer", kept...)
	w.steady("without the API server", m)

	api.up()
	w.await("with it again", append([]string{"fresh"}, want...)...)
	w.steady("with it again", m)
}
