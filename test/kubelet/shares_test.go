package kubelet_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/accel-exporter/accel-exporter/podmap"
)

// Replicas of shared devices and MIG partitions, found among the devices of
// the machine with nothing configured.
func TestShares(t *testing.T) {
	t.Parallel()
	n := startNode(t)
	w := n.watch(podmap.Options{})
	const shared, slice = "nvidia.com/gpu.shared", "nvidia.com/mig-1g.10gb"
	const migA, migB = "MIG-00c0ffee-0000-0000-0000-00000000000a", "MIG-00c0ffee-0000-0000-0000-00000000000b"
	replica := func(gpu, n int) string { return fmt.Sprintf("%s::%d", gpuID(gpu), n) }
	replicas := []string{replica(0, 0), replica(0, 1), replica(0, 2), replica(1, 0)}
	n.serve(shared, "shared", devices(replicas...)...)
	n.serve(slice, "mig", devices(migA, migB)...)
	w.awaitAllocatable("of both", podmap.Allocatable{Resource: shared, IDs: replicas}, podmap.Allocatable{Resource: slice, IDs: []string{migA, migB}})

	want := []string{"fresh", replica(0, 0) + ": first main shared", replica(0, 1) + ": first main shared"}
	n.create(simple("first", shared, 2))
	w.await("two replicas", want...)
	n.create(simple("second", shared, 2))
	want = append(want, replica(0, 2)+": second main shared", replica(1, 0)+": second main shared")
	w.await("a replica of the same device and one of another", want...)
	n.create(simple("third", slice, 1))
	m := w.await("a partition", append(want, migA+": third main")...)

	index := new(podmap.Resolver).Index([]podmap.Known{
		{ID: gpuID(0), Vendor: "nvidia"},
		{ID: gpuID(1), Vendor: "nvidia"},
		{ID: migA, Parent: gpuID(2), Vendor: "nvidia"},
		{ID: migB, Parent: gpuID(2), Vendor: "nvidia"},
	})
	var found []string
	for _, h := range m.Allocations {
		id, how := index.Resolve(h.Resource, h.Ref)
		found = append(found, fmt.Sprint(id, " ", how))
	}
	if want := []string{gpuID(0) + " name", gpuID(0) + " name", gpuID(0) + " name", gpuID(1) + " name", migA + " name"}; !slices.Equal(found, want) {
		t.Errorf("devices %q, want %q", found, want)
	}
}
