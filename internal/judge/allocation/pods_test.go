package allocation_test

import (
	"testing"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
)

// TestPods: values of a pod are computed over its devices. A sum is absent if the
// value of one device is unknown.
func TestPods(t *testing.T) {
	busy := func(use, memory, watts float64) []fact {
		return []fact{used(use, memory), set(collector.MemoryTotal, 2000), unit("sm", use/2), set(collector.PowerWatts, watts)}
	}
	activity := func(r *rig, sm, memory []string) {
		t.Helper()
		r.want(collector.PodSMActivity, sm...)
		r.want(collector.PodMemoryRatio, memory...)
	}
	expect := func(r *rig, devices, utilization, memory, power []string) {
		t.Helper()
		r.want(collector.PodDevices, devices...)
		r.want(collector.PodUtilization, utilization...)
		r.want(collector.PodMemory, memory...)
		r.want(collector.PodPower, power...)
	}
	r := newRig(t)
	r.after(time.Second, device(gpuA, 0, busy(0.5, 1000, 300)...))
	expect(r, nil, nil, nil, nil)

	r.list(alloc("a", gpu, gpuA), alloc("a", gpu, gpuB))
	r.after(time.Second, device(gpuA, 0, busy(0.5, 1000, 300)...), device(gpuB, 1, busy(0.9, 500, 200)...))
	expect(r, []string{"ml a 2"}, []string{"ml a 0.7"}, []string{"ml a 1500"}, []string{"ml a 500"})
	activity(r, []string{"ml a 0.35"}, []string{"ml a 0.375"})

	r.after(time.Second, device(gpuA, 0, busy(0.5, 1000, 300)...), device(gpuB, 1, down))
	expect(r, []string{"ml a 2"}, []string{"ml a 0.5"}, nil, nil)
	activity(r, []string{"ml a 0.25"}, nil)

	// A shared device has no value.
	r.list(replicas...)
	r.after(time.Second, device(gpuA, 0, busy(0.5, 1000, 300)...), device(gpuB, 1))
	expect(r, []string{"ml a 1", "ml b 1"}, nil, nil, nil)
	activity(r, nil, nil)

	r.list()
	r.after(time.Second, device(gpuA, 0, busy(0.5, 1000, 300)...), device(gpuB, 1))
	expect(r, nil, nil, nil, nil)
}
