package allocation_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/judge/allocation"
	"github.com/accel-exporter/accel-exporter/podmap"
)

// worker is the actual state of a process.
type worker struct {
	pid         int
	pod         string // "" for the host
	device      int
	use, memory float64
}

// randomNode is the actual state of a node.
type randomNode struct {
	rng     *rand.Rand
	devices []string // ids
	mig     []bool
	holders []podmap.Allocation
	workers []worker
}

func newRandomNode(seed uint64) *randomNode {
	n := &randomNode{rng: rand.New(rand.NewPCG(seed, 1))}
	for i := range 1 + n.rng.IntN(6) {
		n.devices = append(n.devices, fmt.Sprintf("GPU-5f1c9a1e-0001-0001-0001-%012d", i))
		n.mig = append(n.mig, n.rng.IntN(3) == 0)
		if n.mig[i] {
			n.devices[i] = "MIG" + n.devices[i][3:]
		}
	}
	pod := 0
	for i, id := range n.devices {
		switch n.rng.IntN(4) {
		case 0: // no allocation
		case 1:
			n.add(pod, i, id)
			pod++
		case 2:
			for replica := range 1 + n.rng.IntN(4) {
				n.add(pod, i, fmt.Sprintf("%s::%d", id, replica))
				pod += n.rng.IntN(2)
			}
			pod++
		case 3:
			n.add(pod, i, id, contested)
			n.add(pod+1, i, id, contested)
			pod += 2
		}
	}
	for range n.rng.IntN(5) { // of any pod on any device
		n.spawn("p"+string('a'+rune(n.rng.IntN(16))), n.rng.IntN(len(n.devices)))
	}
	if n.rng.IntN(4) == 0 {
		n.spawn("", n.rng.IntN(len(n.devices)))
	}
	return n
}

func (n *randomNode) add(pod, device int, id string, more ...func(*podmap.Allocation)) {
	name := "p" + string('a'+rune(pod%16))
	n.holders = append(n.holders, alloc(name, gpu, id, more...))
	for range n.rng.IntN(3) {
		n.spawn(name, device)
	}
}

func (n *randomNode) spawn(pod string, device int) {
	n.workers = append(n.workers, worker{pid: 100 + len(n.workers), pod: pod, device: device})
}

// work sets a random use of every process.
func (n *randomNode) work() {
	for i := range n.workers {
		w := &n.workers[i]
		w.use, w.memory = 0, float64(n.rng.IntN(3))*gib
		if n.rng.IntN(3) == 0 {
			w.use = 0.05 + n.rng.Float64()*0.9
		}
	}
}

// truth returns the actual use of a device by a pod, or by all processes for "*".
func (n *randomNode) truth(pod string, device int) (use, memory float64) {
	for _, w := range n.workers {
		if w.device == device && (w.pod == pod || pod == "*") {
			use, memory = use+w.use, memory+w.memory
		}
	}
	return min(1, use), memory
}

// show returns the devices with a random part of the measurements.
func (n *randomNode) show() []collector.Device {
	var out []collector.Device
	for i, id := range n.devices {
		use, memory := n.truth("*", i)
		d := device(id, i)
		if n.mig[i] {
			d.Parent = "GPU-parent"
		}
		switch n.rng.IntN(10) {
		case 0:
			down(&d)
		case 1: // the utilization is not measured
			d.Set(collector.MemoryUsed, memory)
		default:
			if n.mig[i] {
				d.Set(collector.ActivityRatio, use, "graphics")
			} else {
				d.Set(collector.UtilizationRatio, use, "compute")
			}
			d.Set(collector.MemoryUsed, memory)
		}
		if n.rng.IntN(8) > 0 {
			noProcess(&d)
			outside := n.rng.IntN(8) == 0 // of the PID namespace of the workers
			for _, w := range n.workers {
				if w.device != i || outside {
					continue
				}
				use := w.use
				if n.mig[i] {
					use = -1
				}
				client(w.pid, w.memory, use)(&d)
			}
		}
		out = append(out, d)
	}
	return out
}

// ledger has the previous values of an allocation, and its actual idle time.
type ledger struct{ allocated, idleTotal, idle float64 }

// TestRandomNodes checks 300 nodes: the sum over the pods of a device does not exceed
// the device's value, a value of 0 is exact, an idle device was idle, and counters do
// not decrease.
func TestRandomNodes(t *testing.T) {
	seen := map[*collector.Metric]int{}
	for seed := range uint64(300) {
		n := newRandomNode(seed)
		withProcesses(t, func(t *testing.T, r *rig) { runRandomNode(t, r, n, seen) }, func(r *rig) {
			r.settings.Idle = allocation.Idle{Floor: 0.01, Traffic: mib, Grace: 20 * time.Second}
		})
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	for _, m := range []*collector.Metric{collector.AllocationUtilization, collector.AllocationMemory, collector.AllocationIdle, collector.AllocationIdleTotal} {
		if seen[m] < 1000 {
			t.Errorf("%s appeared %d times only", m.Name, seen[m])
		}
	}
}

func runRandomNode(t *testing.T, r *rig, n *randomNode, seen map[*collector.Metric]int) {
	for _, w := range n.workers {
		switch {
		case w.pod == "":
			r.run(w.pid, "", false)
		case n.rng.IntN(12) == 0:
			r.run(w.pid, "?", false)
		default:
			r.run(w.pid, w.pod, n.rng.IntN(12) > 0)
		}
	}
	ledgers := map[string]*ledger{}
	n.work()
	for range 12 {
		if n.rng.IntN(3) == 0 {
			n.work()
		}
		r.list(n.holders...)
		step := time.Duration(1+n.rng.IntN(20)) * time.Second
		r.after(step, n.show()...)
		for i := range r.snap.Devices {
			checkDevice(t, n, &r.snap.Devices[i], i, step.Seconds(), ledgers, seen)
		}
	}
}

func checkDevice(t *testing.T, n *randomNode, d *collector.Device, at int, step float64, ledgers map[string]*ledger, seen map[*collector.Metric]int) {
	const slack = 1e-6
	sums := map[*collector.Metric]float64{}
	for _, x := range d.Readings {
		if !strings.HasPrefix(x.Metric.Name, "accel_allocation_") {
			if x.Metric == collector.DeviceHolders && x.Value == 0 && isAllocated(n, d.ID) {
				t.Errorf("%s is allocated, but reported as free", d.ID)
			}
			continue
		}
		seen[x.Metric]++
		pod := x.Labels[1]
		use, memory := n.truth(pod, at)
		key := d.ID + pod
		l := ledgers[key]
		if l == nil {
			l = &ledger{}
			ledgers[key] = l
		}
		switch x.Metric {
		case collector.AllocationSeconds: // precedes the other series
			if x.Value < l.allocated {
				t.Errorf("%s of %s: allocated %v after %v", pod, d.ID, x.Value, l.allocated)
			}
			l.allocated = x.Value
			if use == 0 {
				l.idle += step
			}
		case collector.AllocationUtilization, collector.AllocationMemory:
			sums[x.Metric] += x.Value
			if actual := map[*collector.Metric]float64{collector.AllocationUtilization: use, collector.AllocationMemory: memory}[x.Metric]; x.Value == 0 && actual != 0 {
				t.Errorf("%s of %s: %s is 0, actual value %v", pod, d.ID, x.Metric.Name, actual)
			}
		case collector.AllocationIdle:
			if x.Value > 0 && use != 0 || x.Value > l.allocated {
				t.Errorf("%s of %s: idle for %v with a use of %v, allocated for %v", pod, d.ID, x.Value, use, l.allocated)
			}
		case collector.AllocationIdleTotal:
			if x.Value < l.idleTotal || x.Value > l.idle+slack {
				t.Errorf("%s of %s: idle total %v after %v, actual %v", pod, d.ID, x.Value, l.idleTotal, l.idle)
			}
			l.idleTotal = x.Value
		}
	}
	use, memory := n.truth("*", at)
	if sums[collector.AllocationUtilization] > use+slack || sums[collector.AllocationMemory] > memory+slack {
		t.Errorf("pods on %s use %v and %v, the device %v and %v", d.ID, sums[collector.AllocationUtilization], sums[collector.AllocationMemory], use, memory)
	}
}

func isAllocated(n *randomNode, id string) bool {
	for _, h := range n.holders {
		if strings.HasPrefix(h.DeviceID, id) {
			return true
		}
	}
	return false
}
