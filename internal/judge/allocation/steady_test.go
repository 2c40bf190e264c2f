package allocation_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/judge/allocation"
	"github.com/accel-exporter/accel-exporter/podmap"
)

// crowd is a node with 250 pods that share 16 GPUs, and its Snapshots.
type crowd struct {
	base []collector.Device
	now  time.Time
	pods *podmap.Map
	snap collector.Snapshot
	node []collector.Reading
}

func newCrowd() *crowd {
	c := &crowd{now: start, node: make([]collector.Reading, 0, 100)}
	var ids []string
	for i := range 16 {
		id := fmt.Sprintf("GPU-5f1c9a1e-0001-0001-0001-%012d", i)
		d := device(id, i, used(0, gib), engine("encoder", 0), set(collector.PCIeTransmit, 1e9))
		for e := range 150 {
			d.Set(collector.XidErrors, 0, fmt.Sprint(e))
		}
		c.base = append(c.base, d)
		for n := range 16 {
			ids = append(ids, fmt.Sprintf("%s::%d", id, n))
		}
	}
	var list []podmap.Allocation
	for i := range 250 {
		list = append(list, alloc(fmt.Sprintf("pod-%03d", i), "nvidia.com/gpu.shared", ids[i]))
	}
	c.pods = &podmap.Map{State: podmap.StateFresh, Time: start, Confirmed: start, Allocations: list, Allocatable: []podmap.Allocatable{{Resource: "nvidia.com/gpu.shared", IDs: ids}}, AllocatableTime: start}
	return c
}

// next returns the next Snapshot. Its readings have the spare capacity that the
// Sampler reserves.
func (c *crowd) next() *collector.Snapshot {
	c.now = c.now.Add(time.Second)
	c.snap.Time, c.snap.Node = c.now, c.node[:0]
	c.snap.Devices = append(c.snap.Devices[:0], c.base...)
	for i := range c.snap.Devices {
		d := &c.snap.Devices[i]
		d.Sampled = c.now
		r := c.base[i].Readings
		d.Readings = append(slices.Grow(r[:len(r):len(r)], 320)[:0], r...)
	}
	return &c.snap
}

// TestSteady: judging a Snapshot without changes allocates no memory.
func TestSteady(t *testing.T) {
	c := newCrowd()
	j := allocation.New(allocation.Options{Map: func() *podmap.Map { return c.pods }}, allocation.DefaultSettings())
	j.Judge(c.next())
	var snaps []*collector.Snapshot
	for range 20 {
		s := *c.next()
		s.Devices, s.Node = slices.Clone(s.Devices), make([]collector.Reading, 0, 2000)
		snaps = append(snaps, &s)
	}
	at := 0
	if n := testing.AllocsPerRun(len(snaps)-2, func() { j.Judge(snaps[at]); at++ }); n > 0 {
		t.Errorf("%v allocations for a Snapshot", n)
	}
}
