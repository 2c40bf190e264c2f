package allocation_test

import (
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/judge/allocation"
	"github.com/accel-exporter/accel-exporter/internal/sim/kubelet"
	"github.com/accel-exporter/accel-exporter/podmap"
)

// cluster is a simulated kubelet, its Watcher and a Judge in a synctest bubble.
type cluster struct {
	*rig
	pipe kubelet.Pipe
	srv  *kubelet.Server
	w    *podmap.Watcher
}

func inCluster(t *testing.T, test func(*testing.T, *cluster)) {
	path := filepath.Join(t.TempDir(), "kubelet.sock")
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{pipe: kubelet.Pipe{File: path}}
		var err error
		if c.srv, err = kubelet.ServeFunc(c.pipe.Listen); err != nil {
			t.Fatal(err)
		}
		c.w = podmap.New(podmap.Options{Socket: path, Dial: c.pipe.Dial})
		c.rig = newRig(t, func(r *rig) {
			r.options = allocation.Options{Map: c.w.Latest, Status: c.w.Status, Refresh: c.w.Refresh, Gone: c.w.Gone}
		})
		var running sync.WaitGroup
		running.Go(func() { c.w.Run(t.Context()) })
		t.Cleanup(running.Wait)
		synctest.Wait()
		test(t, c)
		c.srv.Stop()
	})
}

func (c *cluster) restart(pods ...kubelet.Pod) {
	c.t.Helper()
	if err := c.srv.Restart(pods...); err != nil {
		c.t.Fatal(err)
	}
}

// pass lets d pass, with a Snapshot of the devices every 5 s.
func (c *cluster) pass(d time.Duration, devices ...collector.Device) {
	for range int(d / (5 * time.Second)) {
		time.Sleep(5 * time.Second)
		synctest.Wait()
		c.now = time.Now()
		c.judge(nil, devices...)
	}
}

// allocated returns the devices and pods that accel_allocation_seconds_total has. It
// fails if a value is lower than the one in before, which it updates.
func (c *cluster) allocated(before map[string]float64) []string {
	c.t.Helper()
	var names []string
	for _, d := range c.snap.Devices {
		for _, x := range d.Readings {
			if x.Metric != collector.AllocationSeconds {
				continue
			}
			name := short(d.ID) + " " + strings.Join(x.Labels, " ")
			if x.Value < before[name] {
				c.t.Errorf("%s: %v after %v", name, x.Value, before[name])
			}
			before[name] = x.Value
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// TestKubelet: for every behaviour of the kubelet, running pods keep their devices,
// their allocated time increases, and no allocated device is reported as free.
func TestKubelet(t *testing.T) {
	dra := kubelet.Pod{Namespace: "ml", Name: "claims", Containers: []kubelet.Container{{Name: "main"}, {Name: "side"}}, Claims: []kubelet.Claim{
		{Namespace: "ml", Name: "claim", Devices: []kubelet.ClaimDevice{{Driver: "gpu.nvidia.com", Pool: "node", Device: "gpu-2"}}},
	}}
	proxy := kubelet.Simple("kube-system", "proxy", "")
	pods := []kubelet.Pod{
		proxy, kubelet.Simple("kube-system", "dns", ""), kubelet.Simple("kube-system", "plugin", ""), dra,
		kubelet.Simple("ml", "slice", "nvidia.com/mig-3g.40gb", mig1),
		kubelet.Simple("ml", "card", "fpga.intel.com/af-x", "dfl-port.0"),
		kubelet.Simple("ml", "shared-0", "nvidia.com/gpu.shared", "nvidia5/vgpu0"),
		kubelet.Simple("ml", "shared-1", "nvidia.com/gpu.shared", "nvidia5/vgpu1"),
	}
	devices := []collector.Device{device(gpuA, 2), device(gpuB, 0), slice(mig1, gpuB, 0, 1, "3g.40gb"), fpga("card"), device("shared", 5)}
	want := []string{
		"A ml claims main,side gpu.nvidia.com",
		"card ml card main fpga.intel.com/af-x",
		"m1 ml slice main nvidia.com/mig-3g.40gb",
		"shared ml shared-0 main nvidia.com/gpu.shared",
		"shared ml shared-1 main nvidia.com/gpu.shared",
	}
	for _, b := range []struct {
		name string
		do   func(c *cluster)
	}{
		{"steady", func(c *cluster) { c.pass(10*time.Minute, devices...) }},
		{"restarts with an empty list", func(c *cluster) { c.restart() }},
		{"restarts with half of the list", func(c *cluster) { c.restart(pods[:4]...) }},
		{"restarts with the complete list", func(c *cluster) { c.restart(pods...) }},
		{"restarts while the API server is down", func(c *cluster) { c.restart(proxy); c.pass(50*time.Minute, devices...) }},
		{"is down for a minute", func(c *cluster) { c.srv.Stop() }},
		{"was down for a minute", func(c *cluster) { c.srv.Stop(); c.pass(time.Minute, devices...); c.restart(pods...) }},
		{"hangs", func(c *cluster) { c.srv.Hang() }},
		{"answers garbage", func(c *cluster) { c.srv.Garbage(true) }},
	} {
		t.Run(b.name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				c.srv.SetPods(pods...)
				c.pass(2*time.Minute, devices...)
				before := map[string]float64{}
				c.allocated(before)
				b.do(c)
				c.pass(time.Minute, devices...)
				if diff := cmp.Diff(want, c.allocated(before)); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				for _, line := range c.series(collector.DeviceHolders) {
					if strings.HasSuffix(line, " 0") {
						t.Errorf("reported as free: %s", line)
					}
				}
			})
		})
	}
}

// TestHandOver: a GPU is allocated to another pod, and a GPU is repartitioned while
// the kubelet's list is incomplete.
func TestHandOver(t *testing.T) {
	proxy := kubelet.Simple("kube-system", "proxy", "")
	a, b := kubelet.Simple("ml", "a", gpu, gpuA), kubelet.Simple("ml", "b", gpu, gpuA)
	part := kubelet.Simple("ml", "part", gpu, mig1)
	devices := []collector.Device{device(gpuA, 2, compute(0)), device(gpuB, 0), slice(mig1, gpuB, 0, 1, "3g.40gb")}
	inCluster(t, func(t *testing.T, c *cluster) {
		c.srv.SetPods(proxy, a, part)
		c.pass(2*time.Minute, devices...)
		c.want(collector.AllocationInfo, "A a 1", "m1 part 1")
		if idle := c.value(collector.AllocationIdle); idle < 100 {
			t.Errorf("idle for %v", idle)
		}
		c.srv.SetPods(proxy, b, part)
		c.pass(15*time.Second, devices...)
		c.want(collector.AllocationInfo, "A b 1", "m1 part 1")
		if idle := c.value(collector.AllocationIdle); idle != 0 {
			t.Errorf("b continues the idle time of a: %v", idle)
		}
		c.srv.SetPods(proxy, part)
		c.pass(15*time.Second, devices...)
		c.want(collector.AllocationInfo, "m1 part 1")
		c.want(collector.DeviceHolders, "A 0", "m1 1")
		// The kubelet restarts without the API server, and the partition is
		// destroyed.
		c.restart(proxy)
		c.pass(30*time.Second, devices...)
		c.want(collector.AllocationInfo, "m1 part 1")
		c.pass(15*time.Second, devices[0], devices[1], slice(mig2, gpuB, 0, 2, "3g.40gb"))
		c.want(collector.PodmapAllocations, "listed 0", "kept 0", "contested 0", "superseded 0", "unresolved 0", "unresolved_accelerator 0", "omitted 0")
	})
}

// TestNumbersAsIDs: a bare number is the index of a GPU only where all ids of the
// resource are numbers from 0 on.
func TestNumbersAsIDs(t *testing.T) {
	for _, c := range []struct {
		allocatable []string
		want        []string
	}{
		{nil, []string{"A 1", "B 0"}},
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
