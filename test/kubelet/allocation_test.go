package kubelet_test

import (
	"fmt"
	"slices"
	"testing"

	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"

	"github.com/accel-exporter/accel-exporter/podmap"
)

const gpu = "nvidia.com/gpu"

// gpuID is the UUID of the GPU of that number.
func gpuID(n int) string { return fmt.Sprintf("GPU-5f1c9a1e-0000-0000-0000-%012d", n) }

// gpus are the UUIDs of the first so many GPUs.
func gpus(count int) (ids []string) {
	for n := range count {
		ids = append(ids, gpuID(n))
	}
	return ids
}

// allocated is the line of a GPU and its holder.
func allocated(n int, who string) string { return gpuID(n) + ": " + who }

// The life of a node from before its kubelet: each way in which containers of
// a pod can have devices, up to the end of a pod.
func TestContainers(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	w := n.watch(podmap.Options{})
	w.await("before there is a kubelet", "absent")
	n.start()
	n.create(self)
	w.await("when it lists this exporter", "fresh")

	all := devices(gpus(8)...)
	all[0].numa, all[1].numa = []int64{0, 1}, []int64{0}
	n.serve(gpu, "gpu", all...)
	w.awaitAllocatable("once there is a plug-in", podmap.Allocatable{Resource: gpu, IDs: gpus(8)})

	one := map[string]int{gpu: 1}
	n.create(simple("one", gpu, 1))
	want := []string{"fresh", allocated(0, "one main")}
	m := w.await("a pod with one", want...)
	if h := m.Allocations[0]; h.After.IsZero() || !h.After.Before(h.Since) || h.Pod.Namespace != "ml" || h.Resource != gpu {
		t.Errorf("the allocation of a pod that came while it was watched: %+v", h)
	}
	twice(t, n)

	n.create(pod{name: "two", containers: []container{{name: "a", devices: one}, {name: "b", devices: one}, {name: "c"}}})
	want = append(want, allocated(1, "two a"), allocated(2, "two b"))
	w.await("a pod of two containers and one without", want...)

	n.create(pod{name: "side", init: []container{{name: "proxy", sidecar: true, devices: one}}, containers: []container{{name: "main", devices: one}}})
	want = append(want, allocated(3, "side proxy"), allocated(4, "side main"))
	w.await("a pod with a sidecar", want...)

	prepare := []container{{name: "prepare", devices: one}}
	n.create(pod{name: "init", init: prepare, containers: []container{{name: "main", devices: one}}})
	want = append(want, allocated(5, "init main"))
	w.await("a pod whose main container gets the device of its init container", want...)
	n.await("the init container runs", func() bool { return n.cri.runs("init", "prepare") })
	w.next()
	w.await("while the init container runs", want...)
	n.cri.exit("init", "prepare", 0)
	n.await("the main container runs", func() bool { return n.cri.runs("init", "main") })
	w.next()
	w.await("when the init container has ended", want...)

	n.create(pod{name: "only", init: prepare, containers: []container{{name: "main"}}})
	n.await("the init container runs", func() bool { return n.cri.runs("only", "prepare") })
	w.next()
	w.await("a device that only an init container uses", want...)
	n.cri.exit("only", "prepare", 0)

	batch := simple("batch", gpu, 1)
	batch.once = true
	n.create(batch)
	w.await("a pod that will end", append(slices.Clone(want), allocated(7, "batch main"))...)
	n.await("it runs", func() bool { return n.cri.runs("batch", "main") })
	n.cri.exit("batch", "main", 0)
	w.await("when it has ended", want...)
}

// twice checks that the kubelet lists a device near two NUMA nodes twice, both
// with its holder and as allocatable: two entries are reported once.
func twice(t *testing.T, n *node) {
	t.Helper()
	list, err := n.raw().List(t.Context(), &podresources.ListPodResourcesRequest{})
	must(t, err)
	free, err := n.raw().GetAllocatableResources(t.Context(), &podresources.AllocatableResourcesRequest{})
	must(t, err)
	held := map[string]int{}
	for _, p := range list.GetPodResources() {
		for _, c := range p.GetContainers() {
			count(held, c.GetDevices())
		}
	}
	allocatable := map[string]int{}
	count(allocatable, free.GetDevices())
	if held[gpuID(0)] != 2 || allocatable[gpuID(0)] != 2 || allocatable[gpuID(1)] != 1 {
		t.Errorf("held %v, allocatable %v", held, allocatable)
	}
}

func count(times map[string]int, devices []*podresources.ContainerDevices) {
	for _, d := range devices {
		for _, id := range d.GetDeviceIds() {
			times[id]++
		}
	}
}
