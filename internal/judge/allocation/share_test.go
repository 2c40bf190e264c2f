package allocation_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/podmap"
)

const gib = 1 << 30

// used sets the utilization and the used memory of a device.
func used(utilization, memory float64) fact {
	return func(d *collector.Device) {
		d.Set(collector.UtilizationRatio, utilization, "compute")
		d.Set(collector.MemoryUsed, memory)
	}
}

var (
	exclusive = []podmap.Allocation{alloc("a", gpu, gpuA)}
	replicas  = []podmap.Allocation{alloc("a", gpu, gpuA+"::0"), alloc("b", gpu, gpuA+"::1")}
)

// measures are the values of the pods on one GPU, by which processes are known.
var measures = []struct {
	name         string
	list         []podmap.Allocation
	start        func(r *rig) // starts processes; nil if they are unknown
	facts        []fact
	want         string // of each pod, see uses
	unattributed string // processes: other_pod host_process unknown_pod hidden
}{
	{
		"exclusive, processes unknown", exclusive, nil, f(used(0.5, gib)),
		"a 0.5 1 active", "",
	},
	{
		"shared, processes unknown", replicas, nil, f(used(0.5, gib)),
		"a - - -, b - - -", "",
	},
	{
		"shared and idle", replicas, nil, f(used(0, gib)),
		"a - - idle, b - - idle", "",
	},
	{
		"one allocated replica of two", replicas[:1], nil, f(used(0.5, gib)),
		"a - - -", "",
	},
	{
		"shared, one process each", replicas,
		func(r *rig) { r.run(1, "a", true); r.run(2, "b", true) },
		f(used(0.9, 10*gib), client(1, 4*gib, 0.6), client(2, 5*gib, 0)),
		"a 0.6 4 active, b 0 5 idle", "0 0 0 0",
	},
	{
		"shared, no utilization by process", replicas,
		func(r *rig) { r.run(1, "a", true); r.run(2, "b", true) },
		f(used(0.9, 2*gib), client(1, gib, -1), client(2, gib, -1)),
		"a - 1 -, b - 1 -", "0 0 0 0",
	},
	{
		"shared, one pod without a process", replicas,
		func(r *rig) { r.run(1, "a", true) },
		f(used(0.9, gib), client(1, gib, 0.9)),
		"a 0.9 1 active, b 0 0 idle", "0 0 0 0",
	},
	{
		"shared, one process of an unknown pod", replicas,
		func(r *rig) { r.run(1, "a", true); r.run(2, "b", false) },
		f(used(0.9, 10*gib), client(1, gib, 0.5), client(2, gib, 0.4)),
		"a - - active, b - - -", "0 0 1 0",
	},
	{
		"the sum over processes exceeds the device's value", replicas,
		func(r *rig) { r.run(1, "a", true); r.run(2, "b", true) },
		f(used(0.5, 3*gib), client(1, 2*gib, 0.8), client(2, 2*gib, 0.2)),
		"a 0.4 1.5 active, b 0.1 1.5 active", "0 0 0 0",
	},
	{
		"exclusive, a process of another pod", exclusive,
		func(r *rig) { r.run(1, "other", true) },
		f(used(0.9, gib), client(1, gib, 0.9)),
		"a 0 0 idle", "1 0 0 0",
	},
	{
		"exclusive, an unattributed process, no values by process", exclusive,
		func(r *rig) { r.run(1, "", false); r.run(2, "a", true) },
		f(used(0.9, 10*gib), client(1, -1, -1), client(2, -1, -1)),
		"a - - -", "0 1 0 0",
	},
	{
		"exclusive, a hidden process", exclusive,
		func(r *rig) { r.run(1, "?", false) },
		f(used(0.9, 10*gib), client(1, gib, 0.9)),
		"a 0.9 10 active", "0 0 0 1",
	},
	{
		"exclusive, a process of another PID namespace", exclusive,
		func(r *rig) {},
		f(used(0.9, gib), client(7, gib, 0.9)),
		"a 0.9 1 active", "0 0 0 1",
	},
	{
		"nominal, no process of the pod",
		[]podmap.Allocation{alloc("a", gpu, gpuA+"-1")},
		func(r *rig) { r.run(1, "b", true) },
		f(used(0, 10*gib), client(1, gib, 0)),
		"a - - -", "1 0 0 0",
	},
	{
		"nominal, one pod with every share, processes unknown",
		[]podmap.Allocation{alloc("a", gpu, gpuA+"-0"), alloc("a", gpu, gpuA+"-1")},
		func(r *rig) { r.offer(gpu, gpuA+"-0", gpuA+"-1"); r.options.Proc = nil },
		f(used(0, 10*gib)),
		"a - - -", "",
	},
	{
		"shared and busy, no process listed", replicas, func(*rig) {},
		f(used(0.97, 40*gib), noProcess),
		"a - - -, b - - -", "0 0 0 0",
	},
	{
		"shared partition, no process listed", replicas, func(*rig) {},
		f(unit("graphics", 0.97), set(collector.MemoryUsed, 9*gib), noProcess, func(d *collector.Device) { d.Parent = gpuB }),
		"a - - -, b - - -", "0 0 0 0",
	},
	{
		"every replica, no process listed",
		[]podmap.Allocation{alloc("a", gpu, gpuA+"::0"), alloc("a", gpu, gpuA+"::1")},
		func(r *rig) { r.offer(gpu, gpuA+"::0", gpuA+"::1") },
		f(used(0.9, 4*gib), noProcess),
		"a 0.9 4 active", "0 0 0 0",
	},
	{
		"shared and busy, the processes without utilization", replicas,
		func(r *rig) { r.run(1, "a", true); r.run(2, "b", true) },
		f(used(0.8, 10*gib), client(1, 5*gib, 0), client(2, 5*gib, 0)),
		"a - 5 -, b - 5 -", "0 0 0 0",
	},
	{
		"exclusive and busy, only a process of the host listed", exclusive,
		func(r *rig) { r.run(1, "", false) },
		f(used(0.9, 10*gib), client(1, gib, 0.1)),
		"a - - -", "0 1 0 0",
	},
}

// TestMeasured: each value of an allocation is measured for its pod, or absent.
func TestMeasured(t *testing.T) {
	for _, c := range measures {
		t.Run(c.name, func(t *testing.T) {
			withProcesses(t, func(t *testing.T, r *rig) {
				for range 13 {
					r.list(c.list...)
					r.after(10*time.Second, device(gpuA, 0, c.facts...))
				}
				if got := r.uses(); got != c.want {
					t.Errorf("%q, want %q", got, c.want)
				}
				var unattributed string
				for i, line := range r.series(collector.UnattributedProcesses) {
					if i > 0 {
						unattributed += " "
					}
					unattributed += line[len(line)-1:]
				}
				if unattributed != c.unattributed {
					t.Errorf("unattributed processes %q, want %q", unattributed, c.unattributed)
				}
			}, func(r *rig) {
				if c.start != nil {
					c.start(r)
				} else {
					r.options.Proc = nil
				}
			})
		})
	}
}

// TestIdleShared: activity for an unknown pod ends the idle period of each pod on the
// device. It does not decrease the idle time.
func TestIdleShared(t *testing.T) {
	r := newRig(t)
	r.list(replicas...)
	r.after(0, device(gpuA, 0, compute(0)))
	r.pass(2*time.Minute, compute(0))
	r.want(collector.AllocationIdle, "A a 120", "A b 120")
	r.pass(10*time.Second, compute(0.5))
	r.want(collector.AllocationIdle)
	r.want(collector.AllocationIdleTotal, "A a 120", "A b 120")
	r.pass(70*time.Second, compute(0))
	r.want(collector.AllocationIdle, "A a 70", "A b 70")
	r.want(collector.AllocationIdleTotal, "A a 190", "A b 190")
}

// TestIdleByProcesses: the values of processes are enough to detect an idle
// allocation.
func TestIdleByProcesses(t *testing.T) {
	withProcesses(t, func(t *testing.T, r *rig) {
		r.run(1, "a", true)
		r.run(2, "", false)
		// The second works, and the use of the device is explained.
		both := func(d *collector.Device) { compute(0.5)(d); client(1, gib, 0)(d); client(2, gib, 0.5)(d) }
		r.list(replicas[0])
		r.pass(10*time.Second, both) // the pod is not found yet
		r.pass(2*time.Minute, both)
		r.want(collector.AllocationIdle, "A a 120")
		r.pass(20 * time.Second) // processes are not listed
		r.want(collector.AllocationIdle)
		r.pass(20*time.Second, both)
		r.want(collector.AllocationIdle, "A a 160")
		r.want(collector.AllocationIdleTotal, "A a 130")
	})
}

// TestService: the MPS server works for other processes, so it does not count as
// unattributed.
func TestService(t *testing.T) {
	withProcesses(t, func(t *testing.T, r *rig) {
		r.run(1, "", false)
		r.stat(1, "nvidia-cuda-mps-server", 10)
		for range 3 {
			r.list(replicas...)
			r.after(10*time.Second, device(gpuA, 0, used(0.5, gib), client(1, gib, 0.5)))
		}
		r.want(collector.UnattributedProcesses, "A other_pod 0", "A host_process 0", "A unknown_pod 0", "A hidden 0")
		r.want(collector.AllocationUtilization) // the pods that the server works for are unknown
	})
}

// TestUnknownPod: a process counts as unknown_pod after the search for its pod has
// failed. A process that has just started or ended is not counted.
func TestUnknownPod(t *testing.T) {
	withProcesses(t, func(t *testing.T, r *rig) {
		r.run(1, "a", true)
		step := func(unknown, hidden string, facts ...fact) {
			t.Helper()
			r.list(alloc("a", gpu, gpuA), alloc("h", gpu, gpuB+"-1"))
			r.after(3*time.Second, device(gpuA, 0, facts...), device(gpuB, 1))
			r.want(collector.UnattributedProcesses, "A other_pod 0", "A host_process 0", "A unknown_pod "+unknown, "A hidden "+hidden)
		}
		step("0", "0", client(1, gib, 0))
		r.run(2, "b", false)
		step("0", "0", client(1, gib, 0), client(2, gib, 0))
		step("1", "0", client(1, gib, 0), client(2, gib, 0))
		step("0", "0", client(1, gib, 0), client(3, gib, 0)) // 3 has ended
		step("0", "0", client(1, gib, 0), client(3, gib, 0))
		// The nominal device of this pod may be this one.
		r.run(4, "h", true)
		for range 3 {
			step("0", "0", client(1, gib, 0), client(4, gib, 0))
		}
	})
}

// TestOtherPod: a process counts as other_pod only after a complete list of the
// kubelet without its allocation.
func TestOtherPod(t *testing.T) {
	withProcesses(t, func(t *testing.T, r *rig) {
		r.run(1, "b", true)
		one := device(gpuA, 0, used(0.5, gib), client(1, gib, 0.5))
		step := func(want string) {
			t.Helper()
			r.after(3*time.Second, one)
			if got := r.series(collector.UnattributedProcesses, "reason")[0]; got != "A other_pod "+want {
				t.Errorf("after %v: %s", r.now.Sub(start), got)
			}
		}
		r.list()
		step("0")
		step("0")
		incomplete := func() {
			before := r.pods.Confirmed
			r.list()
			r.state(podmap.StateUnconfirmed)
			r.pods.Confirmed = before
		}
		incomplete()
		step("0")
		r.list()
		step("1")
		incomplete() // does not end it
		step("1")
		r.list(alloc("b", gpu, gpuA))
		step("0")
		r.list(alloc("b", gpu, mig1)) // another device
		step("1")
	})
}

// TestProcessOnPartition: a process on a partition may belong to a pod that has the
// partition or its parent.
func TestProcessOnPartition(t *testing.T) {
	withProcesses(t, func(t *testing.T, r *rig) {
		r.run(1, "a", true)
		for range 3 {
			r.list(alloc("a", gpu, gpuB))
			r.after(3*time.Second, device(gpuB, 0), slice(mig1, gpuB, 0, 1, "3g.40gb", client(1, gib, -1)))
		}
		r.want(collector.UnattributedProcesses, "m1 other_pod 0", "m1 host_process 0", "m1 unknown_pod 0", "m1 hidden 0")
	})
}

// uses describes what each pod does on the GPU: utilization, GiB of memory, idle or
// active. What is not measured is -.
func (r *rig) uses() string {
	var out []string
	for _, info := range r.snap.Devices[0].Readings {
		if info.Metric != collector.AllocationInfo {
			continue
		}
		use, memory, state := "-", "-", "-"
		for _, x := range r.snap.Devices[0].Readings {
			switch {
			case len(x.Labels) < 2 || x.Labels[1] != info.Labels[1]:
			case x.Metric == collector.AllocationUtilization:
				use = number(x.Value)
			case x.Metric == collector.AllocationMemory:
				memory = number(x.Value / gib)
			case x.Metric == collector.AllocationIdle && x.Value > 0:
				state = "idle"
			case x.Metric == collector.AllocationIdle:
				state = "active"
			}
		}
		out = append(out, fmt.Sprintf("%s %s %s %s", info.Labels[1], use, memory, state))
	}
	return strings.Join(out, ", ")
}
