package allocation_test

import (
	"testing"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
)

func joules(v float64) fact { return set(collector.EnergyJoules, v) }

// TestEnergy: a pod has the energy that the device uses while it is allocated to this
// pod alone. While pods share the device, no pod has it.
func TestEnergy(t *testing.T) {
	r := newRig(t)
	step := func(used float64, facts ...fact) {
		r.after(time.Second, device(gpuA, 0, append(facts, joules(used))...))
	}
	step(1000)
	r.want(collector.AllocationEnergy)
	r.list(alloc("a", gpu, gpuA))
	step(1100)
	r.want(collector.AllocationEnergy, "A a 0") // energy before the first list does not count
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
	r.want(collector.AllocationEnergy, "A a 60") // the allocation has ended; its series stays
	r.list(alloc("b", gpu, gpuA))
	step(400)
	step(450)
	r.want(collector.AllocationEnergy, "A b 50", "A a 60")
	r.list(alloc("c", gpu, gpuA))
	step(450) // read before c had the device, and repeated
	step(500)
	r.want(collector.AllocationEnergy, "A c 0", "A a 60", "A b 50")
	step(560)
	r.want(collector.AllocationEnergy, "A c 60", "A a 60", "A b 50")
}

// TestEnergyOfPartitions: the energy of a partition is not measured.
func TestEnergyOfPartitions(t *testing.T) {
	r := newRig(t)
	r.list(alloc("a", "nvidia.com/mig-1g.10gb", mig1))
	for i := range 3 {
		r.after(time.Second, device(gpuA, 0, joules(float64(100*i))), slice(mig1, gpuA, 0, 1, "1g.10gb"))
	}
	r.want(collector.AllocationEnergy)
}

// TestEnergyBesideUnattributed: energy is absent while unattributed processes use the
// device.
func TestEnergyBesideUnattributed(t *testing.T) {
	r := newRig(t, processes)
	r.list(alloc("a", gpu, gpuA))
	r.run(1, "", false)
	for i := range 4 {
		r.after(3*time.Second, device(gpuA, 0, client(1, gib, 0.5), joules(float64(100*i))))
	}
	r.want(collector.AllocationEnergy)
}
