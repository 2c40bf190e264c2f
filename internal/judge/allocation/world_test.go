package allocation_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/collector/sysfs"
	"github.com/accel-exporter/accel-exporter/internal/judge/allocation"
	"github.com/accel-exporter/accel-exporter/podmap"
	"github.com/accel-exporter/accel-exporter/podmap/proc"
)

// start is when every test case begins.
var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

const (
	gpuA = "GPU-5f1c9a1e-0001-0001-0001-000000000001"
	gpuB = "GPU-5f1c9a1e-0002-0002-0002-000000000002"
	mig1 = "MIG-5f1c9a1e-0003-0003-0003-000000000011"
	mig2 = "MIG-5f1c9a1e-0003-0003-0003-000000000012"
	gpu  = "nvidia.com/gpu"
)

// fact changes the state of a device.
type fact func(d *collector.Device)

func set(m *collector.Metric, v float64, labels ...string) fact {
	return func(d *collector.Device) { d.Set(m, v, labels...) }
}

// compute sets the utilization of the compute engine.
func compute(v float64) fact { return set(collector.UtilizationRatio, v, "compute") }

func engine(name string, v float64) fact { return set(collector.UtilizationRatio, v, name) }

func unit(name string, v float64) fact { return set(collector.ActivityRatio, v, name) }

// down makes the device not answer.
func down(d *collector.Device) {
	d.Down = collector.ReasonLost
	d.Readings = slices.DeleteFunc(d.Readings, func(r collector.Reading) bool { return !r.Metric.Kind.Stays() })
	d.SetBool(collector.DeviceUp, false, d.Down)
}

// stale sets the age of the latest sample of the device.
func stale(age time.Duration) fact {
	return func(d *collector.Device) { d.Sampled = d.Sampled.Add(-age) }
}

// client adds a process to the device. A negative memory or use means that it is not
// measured.
func client(pid int, memory, use float64) fact {
	return func(d *collector.Device) {
		c := collector.Client{PID: pid, Type: "compute"}
		if memory >= 0 {
			c.Readings = append(c.Readings, collector.Reading{Metric: collector.MemoryUsed, Value: memory})
		}
		if use >= 0 {
			c.Readings = append(c.Readings, collector.Reading{Metric: collector.UtilizationRatio, Labels: []string{"compute"}, Value: use})
		}
		d.Clients = append(d.Clients, c)
	}
}

// noProcess sets an empty list of processes.
func noProcess(d *collector.Device) { d.Clients = []collector.Client{} }

// device returns a GPU with a minor number.
func device(id string, minor int, facts ...fact) collector.Device {
	n := strconv.Itoa(minor)
	d := collector.Device{
		ID: id, Class: collector.GPU, Vendor: "nvidia", Model: "NVIDIA H100", PCI: fmt.Sprintf("0000:%02x:00.0", 0x10+minor),
		KubeIDs: []string{id, "nvidia" + n, "gpu-" + n, n},
	}
	d.Set(collector.DeviceInfo, 1, "gpu", "nvidia", d.Model, "hopper", n, d.PCI, "", "", "", "")
	d.SetBool(collector.DeviceUp, true, "")
	return with(d, facts...)
}

// slice returns a MIG device of the GPU with a minor number.
func slice(id, parent string, minor, gi int, profile string, facts ...fact) collector.Device {
	d := collector.Device{
		ID: id, Parent: parent, Class: collector.GPU, Vendor: "nvidia", Model: "NVIDIA H100", PCI: fmt.Sprintf("0000:%02x:00.0", 0x10+minor),
		KubeIDs: []string{id, fmt.Sprintf("MIG-%s/%d/0", parent, gi)},
	}
	d.Set(collector.DeviceInfo, 1, "gpu", "nvidia", d.Model, "hopper", fmt.Sprintf("%d:%d:0", minor, gi), d.PCI, "", "", "", profile)
	d.SetBool(collector.DeviceUp, true, "")
	return with(d, facts...)
}

func fpga(id string, facts ...fact) collector.Device {
	d := collector.Device{
		ID: id, Class: collector.FPGA, Vendor: "intel", Model: "N3000", PCI: "0000:5e:00.0",
		Functions: []string{"0000:5f:00.0"}, KubeIDs: []string{"dfl-fme.0", "dfl-port.0"},
	}
	d.SetBool(collector.DeviceUp, true, "")
	return with(d, facts...)
}

func with(d collector.Device, facts ...fact) collector.Device {
	for _, f := range facts {
		f(&d)
	}
	return d
}

// alloc returns one entry of the kubelet's list.
func alloc(pod, resource, id string, more ...func(*podmap.Allocation)) podmap.Allocation {
	h := podmap.Allocation{
		Pod: podmap.Pod{Namespace: "ml", Name: pod}, Containers: []string{"main"}, Resource: resource, DeviceID: id,
		Ref: podmap.ParseID(id), Since: start,
	}
	for _, f := range more {
		f(&h)
	}
	h.Shared = h.Shared || h.Ref.Replica != ""
	return h
}

// claimed marks an allocation by DRA.
func claimed(h *podmap.Allocation) { h.Ref = podmap.ParseDRA(h.Resource, h.DeviceID) }

func contested(h *podmap.Allocation) { h.Contested = true }

func kept(h *podmap.Allocation) { h.Kept = true }

func containers(names ...string) func(*podmap.Allocation) {
	return func(h *podmap.Allocation) { h.Containers = names }
}

// began sets the times of the first list with the allocation and of the last list
// before it.
func began(since, after time.Duration) func(*podmap.Allocation) {
	return func(h *podmap.Allocation) { h.Since, h.After = start.Add(since), start.Add(after) }
}

// rig is a Judge with its inputs.
type rig struct {
	t         *testing.T
	now       time.Time
	pods      *podmap.Map
	status    podmap.Status
	options   allocation.Options
	settings  allocation.Settings
	j         *allocation.Judge
	proc      string // folder
	found     func() // waits until the pods of processes are found
	dirs      []string
	refreshes int // calls of Refresh
	snap      *collector.Snapshot
}

func newRig(t *testing.T, change ...func(*rig)) *rig {
	r := &rig{t: t, now: start, settings: allocation.DefaultSettings(), found: func() {}}
	r.list()
	r.options = allocation.Options{
		Map: func() *podmap.Map { return r.pods }, Status: func() podmap.Status { return r.status },
		Refresh: func() { r.refreshes++ },
	}
	for _, f := range change {
		f(r)
	}
	r.j = allocation.New(r.options, r.settings)
	return r
}

// processes is an option of newRig: the Judge can find the pods of processes.
func processes(r *rig) {
	r.proc = r.t.TempDir()
	r.options.Proc = proc.New(sysfs.New(r.proc))
	r.options.PodDirs = proc.NewPodDirs(func() ([]string, error) { return slices.Clone(r.dirs), nil })
}

// withProcesses runs a test in a synctest bubble, with a Judge that can find the pods
// of processes.
func withProcesses(t *testing.T, test func(*testing.T, *rig), change ...func(*rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, append([]func(*rig){processes}, change...)...)
		r.found = synctest.Wait
		test(t, r)
	})
}

// list sets the kubelet's list.
func (r *rig) list(holders ...podmap.Allocation) {
	old := r.pods
	r.pods = &podmap.Map{Time: r.now, Confirmed: r.now, State: podmap.StateFresh, Pods: len(holders) + 3, Allocations: holders}
	if old != nil {
		r.pods.Allocatable, r.pods.AllocatableTime = old.Allocatable, old.AllocatableTime
	}
}

// offer sets the allocatable ids of a resource.
func (r *rig) offer(resource string, ids ...string) {
	m := *r.pods
	m.Allocatable = slices.DeleteFunc(slices.Clone(m.Allocatable), func(a podmap.Allocatable) bool { return a.Resource == resource })
	m.Allocatable = append(m.Allocatable, podmap.Allocatable{Resource: resource, IDs: ids})
	m.AllocatableTime = r.now
	r.pods = &m
}

// state sets the state of the kubelet's list.
func (r *rig) state(s podmap.State) {
	m := *r.pods
	m.State = s
	r.pods = &m
}

const uidPrefix = "0b6e3c5a-1f4d-4c7e-9a52-7f2b90c1d3"

// run starts a process of a pod: "" is the host, "?" a pod that is not visible. named
// adds the directory from which the name of the pod is read.
func (r *rig) run(pid int, pod string, named bool) {
	r.t.Helper()
	dir := filepath.Join(r.proc, strconv.Itoa(pid))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		r.t.Fatal(err)
	}
	uid := fmt.Sprintf("%s%02x", uidPrefix, len(pod)*7+int(last(pod)))
	cgroup := "0::/kubepods.slice/kubepods-pod" + strings.ReplaceAll(uid, "-", "_") + ".slice/cri-containerd-9f2c1d7e6b5a.scope\n"
	switch pod {
	case "":
		cgroup = "0::/system.slice/x.service\n"
	case "?":
		cgroup = "0::/\n"
	}
	if err := os.WriteFile(filepath.Join(dir, "cgroup"), []byte(cgroup), 0o644); err != nil {
		r.t.Fatal(err)
	}
	r.stat(pid, "python3", pid*10)
	if named {
		r.dirs = append(r.dirs, "ml_"+pod+"_"+uid)
	}
}

// stat sets the command of a process and the clock tick of its start.
func (r *rig) stat(pid int, command string, ticks int) {
	r.t.Helper()
	text := fmt.Sprintf("%d (%s) S 1 42 42 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 %d 0 0", pid, command, ticks)
	if err := os.WriteFile(filepath.Join(r.proc, strconv.Itoa(pid), "stat"), []byte(text), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

func last(s string) byte {
	if s == "" {
		return 0
	}
	return s[len(s)-1]
}

// after moves the clock and judges a Snapshot of the devices.
func (r *rig) after(d time.Duration, devices ...collector.Device) *rig {
	r.now = r.now.Add(d)
	return r.judge(nil, devices...)
}

func (r *rig) judge(news []collector.Event, devices ...collector.Device) *rig {
	r.snap = &collector.Snapshot{Time: r.now, News: news, Devices: slices.Clone(devices)}
	for i := range r.snap.Devices {
		d := &r.snap.Devices[i]
		age := time.Duration(0)
		if !d.Sampled.IsZero() {
			age = time.Time{}.Sub(d.Sampled) // stale
		}
		d.Sampled = r.now.Add(-age)
		d.Readings = slices.Clone(d.Readings)
	}
	r.j.Judge(r.snap)
	r.found()
	check(r.t, r.snap)
	return r
}

// check checks the invariants of every Snapshot.
func check(t *testing.T, s *collector.Snapshot) {
	t.Helper()
	for i := range s.Devices {
		d := &s.Devices[i]
		series := map[string]bool{}
		for _, x := range d.Readings {
			key := x.Metric.Name + "\xff" + strings.Join(x.Labels, "\xff")
			if series[key] || len(x.Labels) != len(x.Metric.Labels) || !x.Metric.Range.Contains(x.Value) {
				t.Errorf("%s: %s%q is %v, twice: %v", d.ID, x.Metric.Name, x.Labels, x.Value, series[key])
			}
			series[key] = true
		}
	}
}

// pass lets the GPU A have the facts for a time, with a Snapshot every 10 s.
func (r *rig) pass(lasts time.Duration, facts ...fact) {
	for range int(lasts / (10 * time.Second)) {
		r.after(10*time.Second, device(gpuA, 0, facts...))
	}
}

// series returns the series of a family: device, pod, the named labels and the value.
func (r *rig) series(m *collector.Metric, labels ...string) []string {
	var out []string
	for _, d := range r.snap.Devices {
		out = append(out, seriesOf(&d, m, labels...)...)
	}
	for _, x := range r.snap.Node {
		if x.Metric == m {
			out = append(out, strings.TrimSpace(strings.Join(x.Labels, " ")+" "+number(x.Value)))
		}
	}
	return out
}

func seriesOf(d *collector.Device, m *collector.Metric, labels ...string) []string {
	var out []string
	for _, x := range d.Readings {
		if x.Metric != m {
			continue
		}
		line := []string{short(d.ID)}
		for i, name := range m.Labels {
			if name == "pod" || slices.Contains(labels, name) || len(m.Labels) == 1 {
				line = append(line, x.Labels[i])
			}
		}
		out = append(out, strings.Join(append(line, number(x.Value)), " "))
	}
	return out
}

func number(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }

var names = map[string]string{gpuA: "A", gpuB: "B", mig1: "m1", mig2: "m2"}

func short(id string) string {
	if n := names[id]; n != "" {
		return n
	}
	return id
}

func (r *rig) want(m *collector.Metric, want ...string) {
	r.t.Helper()
	if diff := cmp.Diff(want, r.series(m)); diff != "" {
		r.t.Errorf("%s after %v (-want +got):\n%s", m.Name, r.now.Sub(start), diff)
	}
}
