package allocation_test

import (
	"testing"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
)

func joules(v float64) fact { return set(collector.EnergyJoules, v) }

// Energy is the pod's that has the device alone, from the first Snapshot to the
// last in which it does, and no pod's while others use it too.
func TestEnergy(t *testing.T) {
	r := newRig(t)
	step := func(used float64, facts ...fact) {
		r.after(time.Second, device(gpuA, 0, append(facts, joules(used))...))
	}
	step(1000)
	r.want(collector.AllocationEnergy)
	r.list(alloc("a", gpu, gpuA))
	step(1100)
	r.want(collector.AllocationEnergy, "A a 0") // the use before its first list does not count
	step(1150)
	r.want(collector.AllocationEnergy, "A a 50")
	step(20) // the driver has been reloaded
	step(30)
	r.want(collector.AllocationEnergy, "A a 60")
	r.after(time.Second, device(gpuA, 0)) // not reported
	step(40)
	r.want(collector.AllocationEnergy, "A a 60")
	r.list(replicas...)
	step(100)
	step(200)
	r.want(collector.AllocationEnergy, "A a 60")
	r.list(replicas[1])
	step(300)
	r.want(collector.AllocationEnergy, "A a 60") // it ended, and keeps its series
	r.list(alloc("b", gpu, gpuA))
	step(400)
	step(450)
	r.want(collector.AllocationEnergy, "A b 50", "A a 60")
}

// A partition has no energy of its own, and that of its device is not its.
func TestEnergyOfPartitions(t *testing.T) {
	r := newRig(t)
	r.list(alloc("a", "nvidia.com/mig-1g.10gb", mig1))
	for i := range 3 {
		r.after(time.Second, device(gpuA, 0, joules(float64(100*i))), slice(mig1, gpuA, 0, 1, "1g.10gb"))
	}
	r.want(collector.AllocationEnergy)
}

// If unattributed processes run, the energy is not the allocation's.
func TestEnergyBesideUnattributed(t *testing.T) {
	r := newRig(t, processes)
	r.list(alloc("a", gpu, gpuA))
	r.run(1, "", false)
	for i := range 4 {
		r.after(3*time.Second, device(gpuA, 0, client(1, gib, 0.5), joules(float64(100*i))))
	}
	r.want(collector.AllocationEnergy)
}
