package allocation_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/judge/allocation"
	"github.com/accel-exporter/accel-exporter/podmap"
)

// node has a whole GPU, a GPU with two MIG devices, FPGAs, and GPUs that only the PCI
// core reports.
func node(facts ...fact) []collector.Device {
	return []collector.Device{
		device(gpuA, 2, facts...),
		device(gpuB, 0),
		slice(mig1, gpuB, 0, 1, "3g.40gb"),
		slice(mig2, gpuB, 0, 7, "1g.10gb"),
		fpga("card"),
		{ID: "0000:86:00.1", Class: collector.FPGA, Vendor: "amd", PCI: "0000:86:00.1", Functions: []string{"0000:86:00.0"}, KubeIDs: []string{"0000:86:00.1", "renderD130"}},
		{ID: "0000:c1:00.0", Class: collector.GPU, Vendor: "amd", PCI: "0000:c1:00.0", Witness: true},
		{ID: "0000:03:00.0", Class: collector.GPU, Vendor: "intel", PCI: "0000:03:00.0", Witness: true},
	}
}

// attributions are the forms of allocations that need no configuration.
var attributions = []struct {
	name string
	list []podmap.Allocation
	// info has device, namespace, pod, containers and resources. holders has the
	// number of pods of each allocated device.
	info    []string
	holders []string
}{
	{"by UUID", []podmap.Allocation{alloc("a", gpu, gpuA)}, []string{"A ml a main nvidia.com/gpu"}, []string{"A 1"}},
	{"by minor number, on GKE", []podmap.Allocation{alloc("a", gpu, "nvidia2")}, []string{"A ml a main nvidia.com/gpu"}, []string{"A 1"}},
	{"a claim of DRA", []podmap.Allocation{alloc("a", "gpu.nvidia.com", "gpu-2", claimed, containers("main", "side"))}, []string{"A ml a main,side gpu.nvidia.com"}, []string{"A 1"}},
	{"a claim of two pods", []podmap.Allocation{alloc("a", "gpu.nvidia.com", "gpu-2", claimed), alloc("b", "gpu.nvidia.com", "gpu-2", claimed)}, []string{"A ml a main gpu.nvidia.com", "A ml b main gpu.nvidia.com"}, []string{"A 2"}},
	{"two containers of one pod", []podmap.Allocation{alloc("a", gpu, gpuA, containers("main", "side"))}, []string{"A ml a main,side nvidia.com/gpu"}, []string{"A 1"}},
	{"MIG by UUID", []podmap.Allocation{alloc("a", "nvidia.com/mig-3g.40gb", mig1)}, []string{"m1 ml a main nvidia.com/mig-3g.40gb"}, []string{"m1 1"}},
	{"MIG by instances, before R470", []podmap.Allocation{alloc("a", gpu, "MIG-"+gpuB+"/7/0")}, []string{"m2 ml a main nvidia.com/gpu"}, []string{"m2 1"}},
	{"MIG by DRA", []podmap.Allocation{alloc("a", "gpu.nvidia.com", "gpu-0-mig-1g10gb-19-6", claimed)}, []string{"m2 ml a main gpu.nvidia.com"}, []string{"m2 1"}},
	{"MIG shared", []podmap.Allocation{alloc("a", gpu, mig1+"::0"), alloc("b", gpu, mig1+"::1")}, []string{"m1 ml a main nvidia.com/gpu", "m1 ml b main nvidia.com/gpu"}, []string{"m1 2"}},
	{"time slicing", []podmap.Allocation{alloc("a", "nvidia.com/gpu.shared", gpuA+"::0"), alloc("b", "nvidia.com/gpu.shared", gpuA+"::1")}, []string{"A ml a main nvidia.com/gpu.shared", "A ml b main nvidia.com/gpu.shared"}, []string{"A 2"}},
	{"two replicas of one pod", []podmap.Allocation{alloc("a", gpu, gpuA+"::0"), alloc("a", gpu, gpuA+"::1", containers("side"))}, []string{"A ml a main,side nvidia.com/gpu"}, []string{"A 1"}},
	{"contested", []podmap.Allocation{alloc("a", gpu, gpuA, contested), alloc("b", gpu, gpuA, contested)}, []string{"A ml a main nvidia.com/gpu", "A ml b main nvidia.com/gpu"}, []string{"A 2"}},
	{"kept", []podmap.Allocation{alloc("a", gpu, gpuA, kept)}, []string{"A ml a main nvidia.com/gpu"}, []string{"A 1"}},
	{"an FPGA's function", []podmap.Allocation{alloc("a", "fpga.intel.com/af-x", "dfl-port.0")}, []string{"card ml a main fpga.intel.com/af-x"}, []string{"card 1"}},
	{"an FPGA by region and function", []podmap.Allocation{alloc("a", "fpga.intel.com/af-x", "dfl-port.0"), alloc("a", "fpga.intel.com/region-y", "dfl-fme.0")}, []string{"card ml a main fpga.intel.com/af-x,fpga.intel.com/region-y"}, []string{"card 1"}},
	{"an FPGA by another PCI function", []podmap.Allocation{alloc("a", "intel.com/intel_fec_5g", "0000:5f:00.0")}, []string{"card ml a main intel.com/intel_fec_5g"}, []string{"card 1"}},
	{"an Alveo by its management function", []podmap.Allocation{alloc("a", "amd.com/xilinx_u250-0", "0000:86:00.0")}, []string{"0000:86:00.1 ml a main amd.com/xilinx_u250-0"}, []string{"0000:86:00.1 1"}},
	{"a GPU that only the PCI core reports", []podmap.Allocation{alloc("a", "amd.com/gpu", "0000:c1:00.0")}, []string{"0000:c1:00.0 ml a main amd.com/gpu"}, []string{"0000:c1:00.0 1"}},
	{"a GPU that only the PCI core reports, by Intel's DRA", []podmap.Allocation{alloc("a", "gpu.intel.com", "0000-03-00-0-0x56c0", claimed)}, []string{"0000:03:00.0 ml a main gpu.intel.com"}, []string{"0000:03:00.0 1"}},
	{"no accelerator", []podmap.Allocation{alloc("a", "rdma/hca", "7"), alloc("a", "devices.kubevirt.io/kvm", "kvm3")}, nil, nil},
	{"no allocation", nil, nil, nil},
}

// TestAttribution: in every state with allocations, each allocation is attributed to
// its device and to no other device.
func TestAttribution(t *testing.T) {
	for _, state := range []podmap.State{podmap.StateFresh, podmap.StateUnconfirmed, podmap.StateStale} {
		for _, c := range attributions {
			t.Run(string(state)+", "+c.name, func(t *testing.T) {
				r := newRig(t)
				r.list(c.list...)
				r.state(state)
				for range 2 { // a second Snapshot has the same
					r.after(time.Second, node()...)
					if diff := cmp.Diff(c.info, lines(r.series(collector.AllocationInfo, "namespace", "container", "resource"))); diff != "" {
						t.Errorf("(-want +got):\n%s", diff)
					}
				}
				all, zero := r.series(collector.DeviceHolders), 0
				var some []string
				for _, line := range all {
					if line[len(line)-2:] == " 0" {
						zero++
						continue
					}
					some = append(some, line)
				}
				if diff := cmp.Diff(c.holders, some); diff != "" {
					t.Errorf("holders (-want +got):\n%s", diff)
				}
				// In the state fresh, the other devices are free, except the
				// partitioned GPU.
				want := len(node()) - 1 - len(c.holders)
				if state != podmap.StateFresh {
					want = 0
				}
				if zero != want {
					t.Errorf("%d devices are free, want %d: %q", zero, want, all)
				}
			})
		}
	}
}

// lines removes the value 1 from the series of an info.
func lines(series []string) []string {
	for i, line := range series {
		series[i] = line[:len(line)-len(" 1")]
	}
	return series
}

// TestUnresolvedIDs: a device is not reported as free if an unresolved id can belong
// to it.
func TestUnresolvedIDs(t *testing.T) {
	for _, c := range []struct {
		resource, id string
		free         int // devices of two
	}{
		{"rdma/hca", "7", 2},
		{gpu, "GPU-5f1c9a1e-0009-0009-0009-000000000009", 2}, // the UUID of another device
		{gpu, "gpu:0", 1},
		{"example.com/gpu", "left", 1},
		{"example.com/accelerator", "left", 0},
		{"nvidia.com/hostdev", "left", 2},
		{"nvidia.com/pgpu", "65", 2}, // an IOMMU group
		{"compute-domain.nvidia.com", "channel-0", 2},
		{"volcano.sh/vgpu-memory", gpuA + "-memory-7", 2},
		{"nvidia.com/vgpu", "5f1c9a1e-0009-0009-0009-000000000009", 2},
		{"nvidia.com/NVIDIA_A10-12Q", "5f1c9a1e-0009-0009-0009-000000000009", 2},
		{"nvidia.com/NVIDIA_H100-12Q", "5f1c9a1e-0009-0009-0009-000000000009", 1},
		{"fpga.intel.com/af-x", "dfl-port.7", 1},
		{"amd.com/gpu", "left", 2},
		{"squat.ai/tun", "92c18435a731d9e1d54d211eb3439a5b25c7f531", 2},
		{"squat.ai/h100", "92c18435a731d9e1d54d211eb3439a5b25c7f531", 1},
		{"squat.ai/my-h100-80gb", "left", 1},
	} {
		r := newRig(t)
		r.list(alloc("a", c.resource, c.id))
		r.after(time.Second, device(gpuA, 0), fpga("card"))
		if got := r.series(collector.DeviceHolders); len(got) != c.free {
			t.Errorf("%s of %s: %q", c.id, c.resource, got)
		}
	}
}

// TestElimination: DRA names a MIG device by its place, which NVML may not report. If
// all other candidates are allocated, the remaining one is the device. If several
// remain, none of them is reported as free; other devices are not affected.
func TestElimination(t *testing.T) {
	const dra = "gpu.nvidia.com"
	const third = "MIG-third"
	devices := []collector.Device{
		device(gpuA, 1), device(gpuB, 0),
		slice(mig1, gpuB, 0, 1, "1g.10gb"), slice(mig2, gpuB, 0, 2, "1g.10gb"), slice(third, gpuB, 0, 3, "3g.40gb"),
	}
	for _, c := range []struct {
		name    string
		list    []podmap.Allocation
		info    []string
		holders []string
	}{
		{
			"one candidate",
			[]podmap.Allocation{alloc("a", gpu, mig1), alloc("b", dra, "gpu-0-mig-1g10gb-19-3", claimed)},
			[]string{"m1 a 1", "m2 b 1"},
			[]string{"A 0", "MIG-third 0", "m1 1", "m2 1"},
		},
		{
			"one candidate for two pods that share it",
			[]podmap.Allocation{alloc("a", gpu, mig1), alloc("b", dra, "gpu-0-mig-1g10gb-19-3", claimed), alloc("c", dra, "gpu-0-mig-1g10gb-19-3", claimed)},
			[]string{"m1 a 1", "m2 b 1", "m2 c 1"},
			[]string{"A 0", "MIG-third 0", "m1 1", "m2 2"},
		},
		{
			"both belong to one pod",
			[]podmap.Allocation{alloc("b", dra, "gpu-0-mig-1g10gb-19-0", claimed), alloc("b", dra, "gpu-0-mig-1g10gb-19-1", claimed)},
			[]string{"m1 b 1", "m2 b 1"},
			[]string{"A 0", "MIG-third 0", "m1 1", "m2 1"},
		},
		{
			"two candidates for two pods",
			[]podmap.Allocation{alloc("a", dra, "gpu-0-mig-1g10gb-19-0", claimed), alloc("b", dra, "gpu-0-mig-1g10gb-19-1", claimed)},
			nil,
			[]string{"A 0", "MIG-third 0"},
		},
		{
			"two candidates for one pod",
			[]podmap.Allocation{alloc("a", dra, "gpu-0-mig-1g10gb-19-0", claimed)},
			nil,
			[]string{"A 0", "MIG-third 0"},
		},
		{
			"the only device of its profile",
			[]podmap.Allocation{alloc("a", dra, "gpu-0-mig-3g40gb-9-4", claimed)},
			[]string{"MIG-third a 1"},
			[]string{"A 0", "MIG-third 1", "m1 0", "m2 0"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			for range 2 {
				r.list(c.list...)
				r.after(time.Second, devices...)
				for _, x := range []struct {
					m    *collector.Metric
					want []string
				}{{collector.AllocationInfo, c.info}, {collector.DeviceHolders, c.holders}} {
					got := r.series(x.m)
					slices.Sort(got)
					if diff := cmp.Diff(x.want, got); diff != "" {
						t.Errorf("%s (-want +got):\n%s", x.m.Name, diff)
					}
				}
			}
		})
	}
}

// TestPublished: the ResourceSlice of a DRA driver identifies the device.
func TestPublished(t *testing.T) {
	published := map[string]podmap.SliceDevice{
		"gpu-0-mig-1g10gb-19-1": {UUID: mig2[:4] + strings.ToUpper(mig2[4:]), PCI: "0000:11:00.0", Partition: true},
		"odd":                   {PCI: "0000:11:00.0"},
		"gone":                  {UUID: "GPU-5f1c9a1e-0009-0009-0009-000000000009"},
	}
	r := newRig(t, func(r *rig) {
		r.options.Claimed = func(driver, pool, device string) podmap.SliceDevice {
			if driver != "gpu.nvidia.com" || pool != "node" {
				t.Errorf("requested pool %q of driver %q", pool, driver)
			}
			return published[device]
		}
	})
	claim := func(pod, device string) podmap.Allocation {
		return alloc(pod, "gpu.nvidia.com", device, claimed, func(h *podmap.Allocation) { h.Claim, h.Pool = "ml/claim", "node" })
	}
	devices := []collector.Device{device(gpuA, 1), device(gpuB, 0), slice(mig1, gpuB, 0, 1, "1g.10gb"), slice(mig2, gpuB, 0, 2, "1g.10gb")}
	r.list(claim("a", "gpu-0-mig-1g10gb-19-1"), claim("b", "odd"), claim("c", "gone"), alloc("d", gpu, "nvidia9"))
	r.after(time.Second, devices...)
	r.want(collector.AllocationInfo, "A b 1", "m2 a 1")
	delete(published, "odd")
	r.list(claim("b", "odd"), claim("c", "gone"))
	published["gone"] = podmap.SliceDevice{UUID: mig1}
	r.after(time.Second, devices...)
	r.want(collector.AllocationInfo, "m1 c 1")
}

// TestAdminAccess: a claim with administrative access takes nothing from the
// holder of the device. While it is unknown which claim has it, no idle time
// counts for either.
func TestAdminAccess(t *testing.T) {
	for _, c := range []struct {
		name                string
		change              func(*podmap.Allocation)
		info                []string
		power, energy, idle []string
		cost                []string
	}{
		{"known", func(h *podmap.Allocation) { h.Admin = h.Pod.Name == "monitor" }, []string{"A train 1"}, []string{"A train 100"}, []string{"A train 12000"}, []string{"A train 120"}, []string{"A train 0.1"}},
		{"unknown", contested, []string{"A monitor 1", "A train 1"}, nil, nil, nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, func(r *rig) { r.settings.Currency, r.settings.Prices = "EUR", []allocation.Price{{PerHour: 3}} })
			var list []podmap.Allocation
			for _, pod := range []string{"monitor", "train"} {
				list = append(list, alloc(pod, "gpu.nvidia.com", "gpu-0", claimed, c.change, func(h *podmap.Allocation) { h.Claim = "ml/" + pod }))
			}
			r.list(list...)
			for i := range 13 {
				r.after(min(time.Duration(i), 1)*10*time.Second, device(gpuA, 0, compute(0), set(collector.PowerWatts, 100), set(collector.EnergyJoules, float64(i)*1000)))
			}
			r.want(collector.AllocationInfo, c.info...)
			if got := r.series(collector.PodmapAllocations)[0]; got != fmt.Sprint("listed ", len(c.info)) {
				t.Errorf("%s, want %d", got, len(c.info))
			}
			r.want(collector.AllocationPower, c.power...)
			r.want(collector.AllocationEnergy, c.energy...)
			r.want(collector.AllocationIdleTotal, c.idle...)
			r.want(collector.AllocationIdleCost, c.cost...)
		})
	}
}

// TestEliminationLasts: a device found by elimination stays found when other
// allocations end. It is no longer a candidate for other allocations.
func TestEliminationLasts(t *testing.T) {
	const dra = "gpu.nvidia.com"
	r := newRig(t)
	devices := []collector.Device{device(gpuB, 0), slice(mig1, gpuB, 0, 1, "1g.10gb"), slice(mig2, gpuB, 0, 2, "1g.10gb")}
	b := alloc("b", dra, "gpu-0-mig-1g10gb-19-3", claimed)
	for _, step := range []struct {
		list []podmap.Allocation
		want []string
	}{
		{[]podmap.Allocation{alloc("a", gpu, mig1), b}, []string{"m1 a 1", "m2 b 1"}},
		{[]podmap.Allocation{b}, []string{"m2 b 1"}},
		{[]podmap.Allocation{b, alloc("c", dra, "gpu-0-mig-1g10gb-19-1", claimed)}, []string{"m1 c 1", "m2 b 1"}},
		{[]podmap.Allocation{alloc("d", dra, "gpu-0-mig-1g10gb-19-3", claimed)}, []string{"m2 d 1"}},
	} {
		r.list(step.list...)
		r.after(time.Second, devices...)
		r.want(collector.AllocationInfo, step.want...)
	}
	// It ends when the partition is destroyed.
	r.after(time.Second, devices[0], devices[1], slice("MIG-new", gpuB, 0, 5, "1g.10gb"))
	r.want(collector.AllocationInfo)
	r.list()
	r.after(time.Second, devices[0], slice("MIG-new", gpuB, 0, 5, "1g.10gb"), slice(mig2, gpuB, 0, 2, "1g.10gb"))
	r.list(alloc("a", gpu, mig2), alloc("e", dra, "gpu-0-mig-1g10gb-19-3", claimed))
	r.after(time.Second, devices[0], slice("MIG-new", gpuB, 0, 5, "1g.10gb"), slice(mig2, gpuB, 0, 2, "1g.10gb"))
	r.want(collector.AllocationInfo, "MIG-new e 1", "m2 a 1")
}

// TestDevicesAppear: a device that appears after the list, or whose names change, is
// attributed from then on.
func TestDevicesAppear(t *testing.T) {
	r := newRig(t)
	r.list(alloc("a", gpu, gpuA), alloc("b", gpu, "nvidia1"))
	r.after(time.Second)
	r.after(time.Second, device(gpuA, 0), device(gpuB, 5))
	r.want(collector.AllocationInfo, "A a 1")
	r.after(time.Second, device(gpuA, 0), device(gpuB, 1))
	r.want(collector.AllocationInfo, "A a 1", "B b 1")
	r.want(collector.PodmapAllocations, "listed 2", "kept 0", "contested 0", "superseded 0", "unresolved 0", "unresolved_accelerator 0", "omitted 0")
	if r.refreshes != 2 {
		t.Errorf("%d refreshes of the kubelet's list", r.refreshes)
	}
	// A device that disappears has no allocation.
	r.after(time.Second, device(gpuB, 1))
	r.want(collector.AllocationInfo, "B b 1")
}

// TestAllocated: the allocated time starts with the first list. It continues while the
// kubelet does not answer, and ends when the list is no longer valid.
func TestAllocated(t *testing.T) {
	r := newRig(t)
	r.list(alloc("a", gpu, gpuA))
	r.after(5*time.Second, device(gpuA, 0))
	r.want(collector.AllocationSeconds, "A a 5")
	r.list(alloc("a", gpu, gpuA, kept))
	r.state(podmap.StateUnconfirmed)
	r.after(10*time.Second, device(gpuA, 0))
	r.want(collector.AllocationSeconds, "A a 15")
	r.state(podmap.StateStale)
	r.after(10*time.Second, device(gpuA, 0, down))
	r.want(collector.AllocationSeconds, "A a 25")
	// With two ids it is the time of the older one.
	r.list(alloc("a", gpu, gpuA+"::0"), alloc("a", gpu, gpuA+"::1", began(20*time.Second, 10*time.Second)))
	r.after(10*time.Second, device(gpuA, 0))
	r.want(collector.AllocationSeconds, "A a 35")
	r.list()
	r.state(podmap.StateUnreachable)
	r.after(10*time.Second, device(gpuA, 0))
	r.want(collector.AllocationSeconds)
	r.want(collector.DeviceHolders)
}

// TestLimit: allocations beyond the limit have no series and are counted. Their
// devices are not free.
func TestLimit(t *testing.T) {
	r := newRig(t, func(r *rig) { r.settings.MaxHolders = 1 })
	r.list(alloc("a", gpu, gpuA), alloc("b", gpu, gpuB))
	for range 2 {
		r.after(time.Second, device(gpuA, 0), device(gpuB, 1))
		r.want(collector.AllocationInfo, "A a 1")
		r.want(collector.DeviceHolders, "A 1", "B 1")
		r.want(collector.PodmapAllocations, "listed 2", "kept 0", "contested 0", "superseded 0", "unresolved 0", "unresolved_accelerator 0", "omitted 1")
	}
	// An allocation beside an omitted one has no values either.
	r.list(alloc("a", gpu, gpuA), alloc("b", "example.com/port", "nvidia0"))
	r.after(time.Second, device(gpuA, 0, used(0.5, gib)))
	r.want(collector.AllocationInfo, "A a 1")
	r.want(collector.DeviceHolders, "A 2")
	r.want(collector.AllocationUtilization)
	r.list(alloc("a", gpu, gpuA))
	r.after(time.Second, device(gpuA, 0, used(0.5, gib)))
	r.want(collector.AllocationUtilization, "A a 0.5")
	r.want(collector.DeviceHolders, "A 1")
}

// TestNumbersAsIDs: a bare number is the index of a GPU only where all ids of the
// resource are numbers from 0 on.
func TestNumbersAsIDs(t *testing.T) {
	for _, c := range []struct {
		allocatable []string
		want        []string
	}{
		{nil, nil}, // the device plugin is down, or the call is refused
		{[]string{"0", "1"}, []string{"A 1", "B 0"}},
		{[]string{"0", "17"}, nil},
	} {
		r := newRig(t)
		r.list(alloc("a", gpu, "0"))
		if c.allocatable != nil {
			r.offer(gpu, c.allocatable...)
		}
		r.after(10*time.Second, device(gpuA, 0), device(gpuB, 1))
		r.want(collector.DeviceHolders, c.want...)
	}
}
