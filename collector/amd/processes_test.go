package amd_test

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/collector/amd"
	"github.com/accel-exporter/accel-exporter/internal/sim/faketree"
	"github.com/accel-exporter/accel-exporter/internal/sim/simtest"
)

// hold lets a process have a DRM file of a GPU open.
func hold(tree *faketree.Tree, pid, fd int, node, gpu string, client int, more string) {
	dir := fmt.Sprintf("/proc/%d/", pid)
	tree.Link(fmt.Sprintf("%sfd/%d", dir, fd), "/dev/dri/"+node)
	tree.Set(fmt.Sprintf("%sfdinfo/%d", dir, fd), fmt.Sprintf(
		"pos:\t0\nflags:\t02100002\npasid:\t32770\ndrm-driver:\tamdgpu\ndrm-client-id:\t%d\ndrm-pdev:\t%s\n%s", client, gpu, more))
}

// host is a node whose processes may be traced.
func host(t *testing.T, name string) *faketree.Tree {
	tree := simtest.LoadTree(t, name)
	tree.Link("/proc/1/ns/pid", "pid:[4026531836]")
	tree.Mkdir("/proc/1/fd")
	return tree
}

// await samples until a device is as it should be: one round looks at open files
// for a bounded time only.
func await(t *testing.T, s *amd.Source, is func(collector.Device) bool) []collector.Device {
	t.Helper()
	for {
		if devices := sample(t, s); slices.ContainsFunc(devices, is) {
			return devices
		}
	}
}

func known(d collector.Device) bool { return d.Clients != nil }

func refused(d collector.Device) bool {
	_, ok := value(d, collector.CallRefused, amd.FDInfo, "no_permission")
	return ok
}

func clients(d collector.Device) string {
	if d.Clients == nil {
		return "unknown"
	}
	var all []string
	for _, c := range d.Clients {
		text := fmt.Sprintf("%d %s", c.PID, c.Type)
		for _, r := range c.Readings {
			text += fmt.Sprintf(" %s%v=%v", strings.TrimPrefix(r.Metric.Name, "accel_"), r.Labels, r.Value)
		}
		all = append(all, text)
	}
	return strings.Join(all, ", ")
}

// TestProcesses: the memory of a process is the sum of its clients, a file that two
// processes have counts once, and a program of ROCm has no use of compute.
func TestProcesses(t *testing.T) {
	const gpu = "0000:05:00.0"
	tree := host(t, "mi300x")
	tree.Link("/proc/200/fd/3", "/dev/kfd")
	tree.Link("/proc/200/fd/4", "/dev/null")
	hold(tree, 200, 5, "renderD128", gpu, 7, "drm-memory-vram:\t2048 KiB\ndrm-memory-gtt: \t1 MiB\n")
	hold(tree, 200, 6, "renderD128", gpu, 8, "drm-memory-vram:\t1024 KiB\ndrm-resident-vram:\t1 MiB\ndrm-total-vram:\t9 MiB\n")
	hold(tree, 200, 7, "renderD128", gpu, 10, "drm-resident-vram:\t0 KiB\ndrm-memory-vram:\t512 KiB\n") // none resident
	hold(tree, 201, 5, "renderD128", gpu, 7, "drm-memory-vram:\t2048 KiB\n")                            // inherited
	hold(tree, 202, 9, "card0", gpu, 9, "drm-memory-vram:\t4 KiB\ndrm-engine-gfx:\t1000 ns\n")
	hold(tree, 203, 3, "renderD150", "0000:99:00.0", 9, "drm-memory-vram:\t4 KiB\n")
	tree.Link("/proc/204/fd/3", "/dev/dri/card9") // graphics of the board, whose driver has no keys
	tree.Set("/proc/204/fdinfo/3", "pos:\t0\nflags:\t02100002\nmnt_id:\t30\nino:\t700\n")
	d := await(t, open(t, tree), known)[0]
	const want = "200 compute memory_used_bytes[]=3.145728e+06 gpu_gtt_memory_used_bytes[]=1.048576e+06, 202 graphics memory_used_bytes[]=4096"
	if got := clients(d); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	for kind, want := range map[string]float64{"compute": 1, "graphics": 1} {
		if n, ok := value(d, collector.Processes, kind); n != want || !ok {
			t.Errorf("%v processes of %s (known: %v), want %v", n, kind, ok, want)
		}
	}
}

// TestProcessesOfPartitions: a process is on the partition whose node it has open.
func TestProcessesOfPartitions(t *testing.T) {
	tree := host(t, "variants/mi300x-cpx")
	hold(tree, 200, 5, "renderD131", "0000:05:00.0", 7, "drm-memory-vram:\t2048 KiB\n")
	for _, d := range await(t, open(t, tree), known) {
		want := ""
		switch {
		case d.Parent == "":
			want = "unknown"
		case strings.HasSuffix(d.ID, "/3"):
			want = "200 graphics memory_used_bytes[]=2.097152e+06"
		}
		if got := clients(d); got != want {
			t.Errorf("%s: %q, want %q", d.ID, got, want)
		}
	}
}

// TestProcessesUnknown: where not every process can be seen, none is reported.
func TestProcessesUnknown(t *testing.T) {
	for name, c := range map[string]struct {
		edit    func(*faketree.Tree)
		refused bool
	}{
		"no first process":    {edit: func(tree *faketree.Tree) { tree.Remove("/proc/1") }},
		"PIDs of a pod":       {edit: func(tree *faketree.Tree) { tree.Link("/proc/1/ns/pid", "pid:[4026532001]") }},
		"kernel without keys": {edit: func(tree *faketree.Tree) { tree.Set("/proc/200/fdinfo/5", "pos:\t0\npdev:\t0000:05:00.0\n") }},
		"refused":             {edit: func(tree *faketree.Tree) { tree.SetErr("/proc/200/fdinfo/5", syscall.EACCES) }, refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			if !faketree.CanMount() {
				t.Skip("needs a mounted tree")
			}
			tree := host(t, "mi300x")
			hold(tree, 200, 5, "renderD128", "0000:05:00.0", 7, "")
			c.edit(tree)
			s := open(t, tree)
			if c.refused {
				await(t, s, refused)
			}
			for range 10 { // each looks at one process at least
				d := sample(t, s)[0]
				if got := clients(d); got != "unknown" || refused(d) != c.refused {
					t.Errorf("processes: %s, refused: %v", got, refused(d))
				}
			}
		})
	}
}
