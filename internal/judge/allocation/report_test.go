package allocation_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/judge/allocation"
	"github.com/accel-exporter/accel-exporter/internal/sim/golden"
	"github.com/accel-exporter/accel-exporter/podmap"
	"github.com/accel-exporter/accel-exporter/podmap/kube"
)

// availability returns the availability of each device with its reason.
func (r *rig) availability() map[string]string {
	out := map[string]string{}
	for _, d := range r.j.Report().Devices {
		out[short(d.ID)] = strings.TrimSpace(string(d.Availability) + " " + d.Why)
	}
	return out
}

// failed sets a verdict on the device.
func failed(d *collector.Device) {
	d.Verdict = &collector.Verdict{State: "failed", Action: "reset", Reasons: []collector.Reason{
		{Code: "xid_79", Text: "it fell off the bus"}, {Code: "b", Text: "b"}, {Code: "c", Text: "c"}, {Code: "d", Text: "d"},
	}}
}

// TestAvailability: the availability of a device and its reason.
func TestAvailability(t *testing.T) {
	two := []collector.Device{device(gpuA, 0), device(gpuB, 1)}
	const plugin = "not allocatable as nvidia.com/gpu: its device plugin reports it as unhealthy, leaves it out, or has not registered"
	for _, c := range []struct {
		name    string
		prepare func(r *rig)
		devices []collector.Device
		a, b    string
	}{
		{"allocated and unhealthy", func(r *rig) { r.list(alloc("a", gpu, gpuA)); r.offer(gpu, gpuB) }, two, "held", "free not allocated"},
		{"unhealthy for its device plugin", func(r *rig) { r.offer(gpu, gpuB) }, two, "not_allocatable " + plugin, "free not allocated"},
		{
			"unhealthy for its device plugin, with a verdict", func(r *rig) { r.offer(gpu, gpuB) },
			[]collector.Device{device(gpuA, 0, failed), two[1]},
			"not_allocatable not allocatable as nvidia.com/gpu: it has failed", "free not allocated",
		},
		{"no device plugin", func(r *rig) { r.offer("cpu.io/x") }, two, "free not allocated, and no device plugin offers it", "free not allocated, and no device plugin offers it"},
		{"the kubelet does not answer", func(r *rig) { r.state(podmap.StateStale) }, two, "unknown the kubelet does not answer", "unknown the kubelet does not answer"},
		{"the kubelet has just started", func(r *rig) { r.state(podmap.StateUnconfirmed) }, two, "unknown the kubelet may not have listed all pods yet", "unknown the kubelet may not have listed all pods yet"},
		{"an unresolved id", func(r *rig) { r.list(alloc("a", gpu, "gpu:0")) }, two, "unknown a pod has a device whose id matches none of this machine, and it may be this one", "unknown a pod has a device whose id matches none of this machine, and it may be this one"},
		{
			"partitioned", func(r *rig) {},
			[]collector.Device{two[0], two[1], slice(mig1, gpuB, 1, 1, "3g.40gb")},
			"free not allocated", "partitioned split into 1 partition, which is allocated instead",
		},
		{
			"used by a process of the host", func(r *rig) { r.run(1, "", false) },
			[]collector.Device{device(gpuA, 0, client(1, gib, 0.5)), two[1]},
			"occupied not allocated, and used by 1 process (python3)", "free not allocated",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, processes)
			c.prepare(r)
			r.after(time.Second, c.devices...)
			got := r.availability()
			if got["A"] != c.a || got["B"] != c.b {
				t.Errorf("A: %s\nB: %s", got["A"], got["B"])
			}
		})
	}
}

// TestReleased: the report names a source that has released its devices.
func TestReleased(t *testing.T) {
	r := newRig(t)
	r.now = start.Add(time.Second)
	r.snap = &collector.Snapshot{Time: r.now, Sources: []collector.Status{{Source: "nvidia", Released: true}}, Devices: []collector.Device{
		{ID: gpuA, Class: collector.GPU, Vendor: "nvidia", KubeIDs: []string{gpuA}},
	}}
	r.j.Judge(r.snap)
	if got := r.availability()["A"]; got != "free not allocated; the exporter has released its driver, so nothing else is known" {
		t.Error(got)
	}
}

// TestReportGolden: the JSON of a Report.
func TestReportGolden(t *testing.T) {
	withProcesses(t, func(t *testing.T, r *rig) {
		if got := r.j.Report(); got.State != podmap.StateStarting || got.Devices == nil {
			t.Errorf("before the first Snapshot: %+v", got)
		}
		r.run(7, "b", true)
		r.list(alloc("a", gpu, gpuA, containers("main", "side")), alloc("c", gpu, "gpu:9"))
		r.offer(gpu, gpuA)
		one := device(gpuA, 0, used(0, gib), failed, set(collector.MemoryTotal, 80*gib), set(collector.PowerWatts, 70), client(7, gib, 0.0))
		for range 11 {
			r.list(r.pods.Allocations...)
			r.judge([]collector.Event{xid(79, 5*time.Second)}, one)
			r.now = r.now.Add(10 * time.Second)
		}
		got, err := json.MarshalIndent(r.j.Report(), "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		golden.Compare(t, "testdata/report.json", string(got)+"\n")
	}, func(r *rig) { r.settings.Currency, r.settings.Prices = "EUR", []allocation.Price{{PerHour: 3600}} })
}

// TestAllocatable: allocatable devices and resources.
func TestAllocatable(t *testing.T) {
	r := newRig(t)
	devices := []collector.Device{device(gpuA, 0), device(gpuB, 1), fpga("card")}
	step := func(d ...collector.Device) {
		t.Helper()
		r.after(10*time.Second, d...)
	}
	step(devices...)
	r.want(collector.DeviceAllocatable)
	r.want(collector.ResourceAllocatable)

	r.offer(gpu, gpuA, gpuB)
	r.offer("fpga.intel.com/af-x", "dfl-port.0")
	step(devices...)
	r.want(collector.DeviceAllocatable, "A nvidia.com/gpu 1", "B nvidia.com/gpu 1", "card fpga.intel.com/af-x 1")
	r.want(collector.ResourceAllocatable, "fpga.intel.com/af-x 1", "nvidia.com/gpu 2")

	r.list(alloc("a", gpu, gpuB))
	r.offer(gpu, gpuA) // B is unhealthy, and the FPGA's device plugin has stopped
	r.offer("fpga.intel.com/af-x")
	step(devices...)
	r.want(collector.DeviceAllocatable, "A nvidia.com/gpu 1", "B nvidia.com/gpu 0", "card fpga.intel.com/af-x 0")
	r.want(collector.ResourceAllocatable, "fpga.intel.com/af-x 0", "nvidia.com/gpu 1")
	r.want(collector.ResourceHeld, "fpga.intel.com/af-x 0", "nvidia.com/gpu 1")
	r.want(collector.ResourceDevices, "fpga.intel.com/af-x 1", "nvidia.com/gpu 2")

	// A device that is shared under another resource name is allocatable.
	r.list()
	r.offer(gpu)
	r.offer("nvidia.com/gpu.shared", gpuA+"::0", gpuA+"::1", gpuB+"::0", gpuB+"::1")
	step(devices...)
	r.want(collector.DeviceAllocatable, "A nvidia.com/gpu.shared 1", "B nvidia.com/gpu.shared 1", "card fpga.intel.com/af-x 0")
	r.want(collector.ResourceAllocatable, "fpga.intel.com/af-x 0", "nvidia.com/gpu 0", "nvidia.com/gpu.shared 4")

	// The partitions of a device are allocatable instead of the device.
	r.offer("nvidia.com/gpu.shared", gpuA+"::0", gpuA+"::1")
	r.offer("nvidia.com/mig-3g.40gb", mig1)
	step(device(gpuA, 0), device(gpuB, 1), slice(mig1, gpuB, 1, 1, "3g.40gb"), slice(mig2, gpuB, 1, 2, "3g.40gb"))
	r.want(collector.DeviceAllocatable, "A nvidia.com/gpu.shared 1", "m1 nvidia.com/mig-3g.40gb 1", "m2 nvidia.com/mig-3g.40gb 0")

	// A device that is allocated by DRA is not expected in a device plugin.
	r = newRig(t)
	r.list(alloc("a", "gpu.nvidia.com", "gpu-1", claimed))
	r.offer(gpu, gpuA)
	step(devices...)
	r.want(collector.DeviceAllocatable, "A nvidia.com/gpu 1")
	r.want(collector.ResourceAllocatable, "nvidia.com/gpu 1")
	r.want(collector.ResourceHeld, "gpu.nvidia.com 1", "nvidia.com/gpu 0")
}

// TestAllocatableUnknown: allocatable is absent for a device without another device
// of its model or profile that is listed, because it may belong to no resource.
func TestAllocatableUnknown(t *testing.T) {
	r := newRig(t)
	other := device("other", 3)
	other.Model = "NVIDIA L4"
	r.offer(gpu, gpuA)
	r.offer("nvidia.com/mig-3g.40gb", mig1)
	r.after(time.Second, device(gpuA, 0), other, device(gpuB, 1), slice(mig1, gpuB, 1, 1, "3g.40gb"), slice(mig2, gpuB, 1, 2, "1g.10gb"))
	r.want(collector.DeviceAllocatable, "A nvidia.com/gpu 1", "m1 nvidia.com/mig-3g.40gb 1")
}

// TestAllocatableByClaims: a device that a DRA driver publishes, or that was ever claimed,
// is not withheld by the device plugin of devices like it.
func TestAllocatableByClaims(t *testing.T) {
	gpuC := "GPU-5f1c9a1e-0003-0003-0003-000000000003"
	published := &kube.Map{}
	r := newRig(t, func(r *rig) { r.options.Meta = func() *kube.Map { return published } })
	step := func() {
		t.Helper()
		r.after(10*time.Second, device(gpuA, 0), device(gpuB, 1), device(gpuC, 2))
	}
	r.offer(gpu, gpuA)
	step()
	r.want(collector.DeviceAllocatable, "A nvidia.com/gpu 1", "B nvidia.com/gpu 0", gpuC+" nvidia.com/gpu 0")
	published.Devices = []kube.Device{{Driver: "gpu.nvidia.com", Pool: "node", Name: "gpu-7", UUID: gpuB}}
	r.list()
	step()
	r.want(collector.DeviceAllocatable, "A nvidia.com/gpu 1", gpuC+" nvidia.com/gpu 0")
	r.want(collector.ResourceDevices, "nvidia.com/gpu 2")

	// Without slices a claim shows that the node has such devices.
	published.Devices = nil
	r = newRig(t)
	r.list(alloc("a", "gpu.nvidia.com", "gpu-1", claimed))
	r.offer(gpu, gpuA)
	step()
	r.want(collector.DeviceAllocatable, "A nvidia.com/gpu 1")
	r.list()
	step()
	r.want(collector.DeviceAllocatable, "A nvidia.com/gpu 1")
	r.offer(gpu, gpuA, gpuC)
	step()
	r.offer(gpu, gpuA)
	step()
	r.want(collector.DeviceAllocatable, "A nvidia.com/gpu 1", gpuC+" nvidia.com/gpu 0") // which it was
	r.offer(gpu, gpuA, gpuB)
	step()
	r.offer(gpu, gpuA)
	step()
	r.want(collector.DeviceAllocatable, "A nvidia.com/gpu 1", "B nvidia.com/gpu 0", gpuC+" nvidia.com/gpu 0") // no driver's any more

	for driver, want := range map[string][]string{
		"gpu.nvidia.com":            {"A nvidia.com/gpu 1"}, // a GPU of another name
		"compute-domain.nvidia.com": {"A nvidia.com/gpu 1", "B nvidia.com/gpu 0", gpuC + " nvidia.com/gpu 0"},
		"dra.net":                   {"A nvidia.com/gpu 1", "B nvidia.com/gpu 0", gpuC + " nvidia.com/gpu 0"},
		"gpu.intel.com":             {"A nvidia.com/gpu 1", "B nvidia.com/gpu 0", gpuC + " nvidia.com/gpu 0"},
	} {
		r = newRig(t)
		r.offer(gpu, gpuA)
		r.list(alloc("a", driver, "odd", claimed))
		step()
		r.want(collector.DeviceAllocatable, want...)
		r.list()
		step()
		r.want(collector.DeviceAllocatable, "A nvidia.com/gpu 1", "B nvidia.com/gpu 0", gpuC+" nvidia.com/gpu 0")
	}
}

// TestAllocatableThoughUnlisted: a device that a pod gets while the kubelet does not list
// it as allocatable is allocatable, unlike a device that became unhealthy on its pod.
func TestAllocatableThoughUnlisted(t *testing.T) {
	r := newRig(t)
	step := func() {
		t.Helper()
		r.after(10*time.Second, device(gpuA, 0), device(gpuB, 1))
	}
	r.offer(gpu, gpuA)
	step()
	r.want(collector.DeviceAllocatable, "A nvidia.com/gpu 1", "B nvidia.com/gpu 0")
	r.list(alloc("a", gpu, gpuB, func(h *podmap.Allocation) { h.After = start })) // it may have got it before
	step()
	r.want(collector.DeviceAllocatable, "A nvidia.com/gpu 1", "B nvidia.com/gpu 0")
	r.list(alloc("b", gpu, gpuB, func(h *podmap.Allocation) { h.After = r.now }))
	step()
	r.list()
	step()
	r.want(collector.DeviceAllocatable, "A nvidia.com/gpu 1")
	r.offer(gpu, gpuA, gpuB)
	step()
	r.offer(gpu, gpuA)
	step()
	r.want(collector.DeviceAllocatable, "A nvidia.com/gpu 1", "B nvidia.com/gpu 0")
}
