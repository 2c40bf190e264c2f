package allocation_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/podmap"
)

func xid(code uint64, at time.Duration, more ...func(*collector.Event)) collector.Event {
	e := collector.Event{Source: "nvidia", Device: gpuA, Kind: collector.EventXid, Code: code, Time: start.Add(at)}
	for _, f := range more {
		f(&e)
	}
	return e
}

// happen judges a Snapshot with events at a time after the start.
func (r *rig) happen(at time.Duration, news []collector.Event, devices ...collector.Device) {
	r.now = start.Add(at)
	r.judge(news, devices...)
}

func (r *rig) faults(want ...string) {
	r.t.Helper()
	var got []string
	for _, d := range r.snap.Devices {
		for _, x := range d.Readings {
			if x.Metric == collector.AllocationFault {
				got = append(got, fmt.Sprintf("%s %s %s %v", short(d.ID), x.Labels[1], x.Labels[4], x.Value-float64(start.Unix())))
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		r.t.Errorf("faults after %v (-want +got):\n%s", r.now.Sub(start), diff)
	}
}

// TestFault: a fault is recorded for the pod that had the device at that time. Its
// series stays for an hour after the pod ends.
func TestFault(t *testing.T) {
	r := newRig(t)
	one := device(gpuA, 0)
	r.list(alloc("a", gpu, gpuA))
	r.happen(time.Second, nil, one)
	r.happen(10*time.Second, []collector.Event{xid(79, 9*time.Second), {Device: gpuA, Kind: collector.EventBusLoss, Time: start.Add(8 * time.Second)}}, one)
	r.faults("A a xid_79 9", "A a bus_loss 8")
	if r.refreshes != 1 {
		t.Errorf("%d refreshes of the kubelet's list", r.refreshes)
	}
	r.want(collector.AllocationFaultAge, "A a 1", "A a 2")
	// The second witness reports the same fault. A log entry from before the
	// start of the exporter is not recorded.
	r.happen(11*time.Second, []collector.Event{
		xid(79, 10*time.Second, func(e *collector.Event) { e.Witnesses = []string{"nvidia", "kernellog"} }),
		xid(48, 2*time.Second, func(e *collector.Event) { e.Past = true }),
	}, one)
	r.faults("A a xid_79 9", "A a bus_loss 8")

	// An older fault with the same number is reported late.
	r.happen(12*time.Second, []collector.Event{xid(79, 4*time.Second)}, one)
	r.faults("A a xid_79 9", "A a bus_loss 8")

	r.list(alloc("b", gpu, gpuA, began(20*time.Second, 10*time.Second)))
	r.happen(20*time.Second, nil, one)
	r.faults("A a xid_79 9", "A a bus_loss 8")
	// A fault of the previous pod is reported late.
	r.happen(21*time.Second, []collector.Event{xid(13, 12*time.Second), xid(31, 20500*time.Millisecond)}, one)
	r.faults("A b xid_31 20.5", "A a xid_79 9", "A a bus_loss 8", "A a xid_13 12")
	// A pod of the same name continues the series.
	r.list(alloc("a", gpu, gpuA, began(30*time.Second, 20*time.Second)))
	r.happen(30*time.Second, []collector.Event{xid(79, 30*time.Second)}, one)
	r.faults("A a xid_79 30", "A a bus_loss 8", "A a xid_13 12", "A b xid_31 20.5")
	r.list()
	r.happen(40*time.Second, nil, one)
	r.faults("A b xid_31 20.5", "A a xid_79 30", "A a bus_loss 8", "A a xid_13 12")
	r.happen(30*time.Second+time.Hour+time.Second, nil, one)
	r.faults("A a xid_79 30", "A a bus_loss 8", "A a xid_13 12")
	r.happen(40*time.Second+time.Hour+time.Second, nil, one)
	r.faults()
}

// TestFaultBeforeList: a fault is recorded for a pod that the kubelet lists shortly
// after the fault.
func TestFaultBeforeList(t *testing.T) {
	r := newRig(t)
	one := device(gpuA, 0)
	r.happen(10*time.Second, []collector.Event{xid(79, 9*time.Second)}, one)
	r.faults()
	r.list(alloc("a", gpu, gpuA, began(11*time.Second, 0)))
	r.happen(11*time.Second, nil, one)
	r.faults("A a xid_79 9")
	// It is not recorded for a pod that started after the fault, or whose start
	// is unknown.
	r = newRig(t)
	r.happen(10*time.Second, []collector.Event{xid(79, 9*time.Second)}, one)
	r.list(alloc("a", gpu, gpuA, began(20*time.Second, 10*time.Second)), alloc("b", gpu, gpuA, func(h *podmap.Allocation) { h.Since = start.Add(20 * time.Second) }))
	r.happen(20*time.Second, nil, one)
	r.faults()
	// It is not recorded for a pod that is first listed minutes later.
	r = newRig(t)
	r.happen(10*time.Second, []collector.Event{xid(79, 9*time.Second)}, one)
	r.happen(5*time.Minute, nil, one)
	r.list(alloc("a", gpu, gpuA, began(5*time.Minute, 0)))
	r.happen(5*time.Minute, nil, one)
	r.faults()
}

// TestFaultOfPartition: a fault of a partitioned GPU is recorded for the partition
// that it names, or for all partitions.
func TestFaultOfPartition(t *testing.T) {
	r := newRig(t)
	r.list(alloc("a", gpu, mig1), alloc("b", gpu, mig2))
	devices := []collector.Device{device(gpuB, 0), slice(mig1, gpuB, 0, 1, "3g.40gb"), slice(mig2, gpuB, 0, 2, "3g.40gb")}
	of := func(partition string) func(*collector.Event) {
		return func(e *collector.Event) { e.Device, e.Partition = gpuB, partition }
	}
	r.happen(time.Second, []collector.Event{xid(43, time.Second, of(mig2)), xid(79, time.Second, of(""))}, devices...)
	r.faults("m1 a xid_79 1", "m2 b xid_43 1", "m2 b xid_79 1")
}
