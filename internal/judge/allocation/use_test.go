package allocation_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/judge/allocation"
	"github.com/accel-exporter/accel-exporter/podmap"
)

// TestCounters: an increase of a traffic counter shows activity between two samples.
func TestCounters(t *testing.T) {
	type sample []fact
	count := func(m *collector.Metric, v float64, labels ...string) sample {
		return sample{compute(0), set(m, v, labels...)}
	}
	for _, c := range []struct {
		name    string
		samples []sample // 10 s apart
		active  bool
	}{
		{"PCIe below the limit", []sample{count(collector.PCIeTransmit, 1e9), count(collector.PCIeTransmit, 1e9+mib)}, false},
		{"PCIe sent", []sample{count(collector.PCIeTransmit, 1e9), count(collector.PCIeTransmit, 1e9+20*mib)}, true},
		{"PCIe received", []sample{count(collector.PCIeReceive, 1e9), count(collector.PCIeReceive, 1e9+20*mib)}, true},
		{"PCIe restarted", []sample{count(collector.PCIeTransmit, 1e12), count(collector.PCIeTransmit, 1e9)}, false},
		{"PCIe first sample", []sample{{compute(0)}, count(collector.PCIeTransmit, 1e12)}, false},
		{"NVLink over all links", []sample{
			{compute(0), set(collector.NVLinkTransmit, 1e9, "0"), set(collector.NVLinkTransmit, 1e9, "1")},
			{compute(0), set(collector.NVLinkTransmit, 1e9+8*mib, "0"), set(collector.NVLinkTransmit, 1e9+8*mib, "1")},
		}, true},
		{"one more NVLink", []sample{
			{compute(0), set(collector.NVLinkReceive, 1e9, "0")},
			{compute(0), set(collector.NVLinkReceive, 1e9, "0"), set(collector.NVLinkReceive, 1e9, "1")},
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			r.list(alloc("a", gpu, gpuA))
			for _, s := range c.samples {
				r.after(10*time.Second, device(gpuA, 0, s...))
			}
			if _, active := r.only(collector.AllocationLastActivity); active != c.active {
				t.Errorf("active: %v", active)
			}
		})
	}
}

// only returns the value of the only series of a family.
func (r *rig) only(m *collector.Metric) (float64, bool) {
	n := len(r.series(m))
	return r.value(m), n == 1
}

// TestFPGA: an FPGA is active while a compute unit runs.
func TestFPGA(t *testing.T) {
	runs := func(n float64) fact { return set(collector.FPGAExecutions, n, "0") }
	for _, c := range []struct {
		name          string
		first, second []fact
		idle          string // "" means unknown
	}{
		{"nothing is measured", nil, nil, ""},
		{"no runs", f(runs(7)), f(runs(7)), "idle"},
		{"runs", f(runs(7)), f(runs(8)), "active"},
		{"another image", f(runs(7)), f(runs(0)), "active"},
		{"a unit runs", f(runs(7)), f(runs(7), set(collector.FPGAComputeUnitState, 1, "0", "running")), "active"},
		{"no unit runs", f(runs(7)), f(runs(7), set(collector.FPGAComputeUnitState, 0, "0", "running")), "idle"},
		{"only states of units are known", f(set(collector.FPGAComputeUnitState, 1, "0", "idle")), f(set(collector.FPGAComputeUnitState, 1, "0", "idle")), ""},
		{"the source has failed", f(runs(7)), f(runs(7), down), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			r.list(alloc("a", "fpga.intel.com/af-x", "dfl-port.0"))
			r.after(time.Second, fpga("card", c.first...))
			for range 12 {
				r.after(10*time.Second, fpga("card", c.second...))
				if c.idle == "active" {
					break
				}
			}
			got := ""
			if v, ok := r.only(collector.AllocationIdle); ok && v > 0 {
				got = "idle"
			} else if ok {
				got = "active"
			}
			if got != c.idle {
				t.Errorf("%q, want %q", got, c.idle)
			}
		})
	}
}

// TestSampledOnce: a sample that is in two Snapshots is evaluated once.
func TestSampledOnce(t *testing.T) {
	r := newRig(t)
	r.list(alloc("a", "amd.com/x", "0000:5e:00.0"))
	runs := func(n float64) fact { return set(collector.FPGAExecutions, n, "0") }
	r.after(10*time.Second, fpga("card", runs(1)))
	r.after(10*time.Second, fpga("card", runs(2)))
	r.after(10*time.Second, fpga("card", runs(2), stale(10*time.Second)))
	if v, _ := r.only(collector.AllocationLastActivity); v != float64(start.Unix())+30 {
		t.Errorf("last activity at %v", v)
	}
	r.after(10*time.Second, fpga("card", runs(2)))
	if v, _ := r.only(collector.AllocationLastActivity); v != float64(start.Unix())+30 {
		t.Errorf("last activity at %v", v)
	}
}

// TestCost: the cost of idle time is the price of the device. Pods that share a device
// share its price.
func TestCost(t *testing.T) {
	prices := func(p ...allocation.Price) func(*rig) {
		return func(r *rig) { r.settings.Currency, r.settings.Prices = "EUR", p }
	}
	for _, c := range []struct {
		name   string
		prices []allocation.Price
		list   []podmap.Allocation
		offer  []string
		want   []string
	}{
		{"by model", []allocation.Price{{Model: "NVIDIA A*", PerHour: 1}, {Model: "NVIDIA H*", PerHour: 2}}, []podmap.Allocation{alloc("a", gpu, gpuA)}, nil, []string{"A a EUR 2"}},
		{"by resource", []allocation.Price{{Resource: "nvidia.com/gpu", PerHour: 3}, {PerHour: 1}}, []podmap.Allocation{alloc("a", gpu, gpuA)}, nil, []string{"A a EUR 3"}},
		{"by class", []allocation.Price{{Class: "fpga", PerHour: 3}, {Class: "gpu", PerHour: 4}}, []podmap.Allocation{alloc("a", gpu, gpuA)}, nil, []string{"A a EUR 4"}},
		{"no price", []allocation.Price{{Class: "fpga", PerHour: 3}}, []podmap.Allocation{alloc("a", gpu, gpuA)}, nil, nil},
		{"a partition, price without a profile", []allocation.Price{{PerHour: 8}}, []podmap.Allocation{alloc("a", gpu, mig1)}, nil, nil},
		{"a partition, price by profile", []allocation.Price{{Profile: "1g.*", PerHour: 7}, {Profile: "3g.*", PerHour: 5}}, []podmap.Allocation{alloc("a", gpu, mig1)}, nil, []string{"m1 a EUR 5"}},
		{"shared", []allocation.Price{{PerHour: 2}}, replicas, nil, []string{"A a EUR 1", "A b EUR 1"}},
		{"one of four replicas", []allocation.Price{{PerHour: 2}}, replicas[:1], []string{gpuA + "::0", gpuA + "::1", gpuA + "::2", gpuA + "::3"}, []string{"A a EUR 0.5"}},
		{"contested", []allocation.Price{{PerHour: 2}}, []podmap.Allocation{alloc("a", gpu, gpuA, contested), alloc("b", gpu, gpuA, contested)}, nil, []string{"A a EUR 1", "A b EUR 1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, prices(c.prices...))
			r.list(c.list...)
			if c.offer != nil {
				r.offer(gpu, c.offer...)
			}
			for i := range 361 {
				r.after(min(time.Duration(i), 1)*10*time.Second, device(gpuA, 0, compute(0)), device(gpuB, 1), slice(mig1, gpuB, 1, 1, "3g.40gb", unit("graphics", 0)))
			}
			if diff := cmp.Diff(c.want, r.series(collector.AllocationIdleCost, "currency")); diff != "" {
				t.Errorf("after an hour (-want +got):\n%s", diff)
			}
		})
	}
}

// TestIdleByResource: the first matching entry of idle.resources sets the limits.
func TestIdleByResource(t *testing.T) {
	for _, c := range []struct {
		name string
		rule allocation.IdleResource
		use  []fact
		want string
	}{
		{"another resource", allocation.IdleResource{Resource: "amd.com/*", Floor: 0.2, Traffic: 1e9, Grace: time.Hour}, f(compute(0)), "A a 120"},
		{"below its floor", allocation.IdleResource{Resource: "nvidia.com/*", Floor: 0.2}, f(compute(0.1)), "A a 120"},
		{"beyond its floor", allocation.IdleResource{Resource: "nvidia.com/*", Floor: 0.2}, f(compute(0.3)), "A a 0"},
		{"below its traffic", allocation.IdleResource{Resource: "nvidia.com/*", Traffic: 1e9}, f(compute(0), set(collector.PCIeReceiveRate, 9e8)), "A a 120"},
		{"within its grace period", allocation.IdleResource{Resource: "nvidia.com/*", Grace: time.Hour}, f(compute(0)), "A a 0"},
		{"defaults of an entry", allocation.IdleResource{Resource: "nvidia.com/*"}, f(compute(0)), "A a 120"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, func(r *rig) {
				r.settings.Idle.Resources = []allocation.IdleResource{c.rule, {Resource: "amd.com/*", Never: true}}
			})
			r.list(alloc("a", gpu, gpuA))
			r.after(0, device(gpuA, 0, c.use...))
			r.after(2*time.Minute, device(gpuA, 0, c.use...))
			r.want(collector.AllocationIdle, c.want)
		})
	}
}

// TestApply: new settings apply from the next Snapshot. Counters continue; the cost
// restarts at 0 in another currency.
func TestApply(t *testing.T) {
	r := newRig(t, func(r *rig) { r.settings.Currency, r.settings.Prices = "EUR", []allocation.Price{{PerHour: 36}} })
	r.list(alloc("a", gpu, gpuA))
	one := device(gpuA, 0, compute(0.05))
	r.after(0, one)
	r.after(100*time.Second, one)
	r.want(collector.AllocationIdle, "A a 0")
	s := r.settings
	s.Idle.Floor = 0.1
	r.j.Apply(s)
	r.after(100*time.Second, one)
	r.want(collector.AllocationIdle, "A a 100")
	r.want(collector.AllocationIdleCost, "A a 1")
	s.Currency = "USD"
	r.j.Apply(s)
	r.after(100*time.Second, one)
	r.want(collector.AllocationIdleCost, "A a 1")
	r.want(collector.AllocationIdleTotal, "A a 200")
	s.Idle.Resources = []allocation.IdleResource{{Resource: "nvidia.com/*", Never: true}}
	s.Ignore = nil
	r.j.Apply(s)
	r.after(100*time.Second, one)
	r.want(collector.AllocationIdle)
	r.want(collector.AllocationIdleTotal)
	s.Idle.Resources = nil
	r.j.Apply(s)
	r.after(100*time.Second, one)
	r.want(collector.AllocationIdleTotal, "A a 300") // the exempt time does not count
	s.Ignore, s.Aliases = nil, []podmap.Alias{{ID: gpuA, Device: gpuB}}
	r.j.Apply(s)
	r.after(100*time.Second, one, device(gpuB, 1))
	r.want(collector.AllocationInfo, "B a 1")
}

// TestFirstActivity: the first activity is known only if the start of the allocation and
// all the time since were observed.
func TestFirstActivity(t *testing.T) {
	for _, c := range []struct {
		name  string
		first podmap.Allocation
		uses  []fact // 10 s apart, from the start of the allocation
		want  string // since the start of the allocation
	}{
		{"after half a minute", alloc("a", gpu, gpuA, began(0, -5*time.Second)), f(compute(0), compute(0), compute(0), compute(0.5), compute(0), compute(0.5)), "30s"},
		{"active from the start", alloc("a", gpu, gpuA, began(0, -5*time.Second)), f(compute(0.5), compute(0.5)), "0s"},
		{"not active yet", alloc("a", gpu, gpuA, began(0, -5*time.Second)), f(compute(0), compute(0)), ""},
		{"activity unknown at the start", alloc("a", gpu, gpuA, began(0, -5*time.Second)), f(engine("encoder", 0), compute(0), compute(1)), ""},
		{"start not observed", alloc("a", gpu, gpuA), f(compute(0), compute(1)), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			r.list(c.first)
			for i, use := range c.uses {
				r.after(min(time.Duration(i), 1)*10*time.Second, device(gpuA, 0, use))
			}
			got := ""
			if l := r.j.History().Records[0]; !l.First.IsZero() {
				got = l.First.Sub(l.Since).String()
			}
			if got != c.want {
				t.Errorf("first activity after %q, want %q", got, c.want)
			}
		})
	}
}

// TestPower: a pod has the power and the energy of a whole device that is allocated to it
// alone and that no other process uses.
func TestPower(t *testing.T) {
	for _, c := range []struct {
		name          string
		list          []podmap.Allocation
		facts         []fact
		power, energy []string
	}{
		{"a whole device", exclusive, nil, []string{"A a 300"}, []string{"A a 90"}},
		{"shared", replicas, nil, nil, nil},
		{"a partition", []podmap.Allocation{alloc("a", gpu, mig1)}, nil, nil, nil},
		{"beside a process of the host", exclusive, f(client(1, gib, 0.5)), nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, processes)
			r.run(1, "", false)
			r.list(c.list...)
			for i := range 4 {
				read := f(set(collector.PowerWatts, 300), joules(float64(30*i)))
				r.after(3*time.Second, device(gpuA, 0, slices.Concat(read, c.facts)...), device(gpuB, 1), slice(mig1, gpuB, 1, 1, "3g.40gb", read...))
			}
			r.want(collector.AllocationPower, c.power...)
			r.want(collector.AllocationEnergy, c.energy...)
		})
	}
}

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
