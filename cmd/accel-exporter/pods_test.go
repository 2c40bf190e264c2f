package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/accel-exporter/accel-exporter/internal/sim"
)

// often is the flag that makes the exporter read the kubelet's list every second.
const often = "--podresources.interval=1s"

// serveKubelet serves the kubelet of the node at a state file until the test
// ends.
func serveKubelet(t testing.TB, state string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended, err := sim.ServeKubelet(ctx, state)
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	t.Cleanup(func() { cancel(); ended() })
}

// startPods is start on a Kubernetes node.
func startPods(t testing.TB, scenario string, simFlags []string, args ...string) *node {
	t.Helper()
	state, flags := compile(t, scenario, simFlags...)
	serveKubelet(t, state)
	return startOn(t, state, append(flags, args...)...)
}

// configured writes a configuration file and returns the flag that names it.
func configured(t testing.TB, lines ...string) string {
	t.Helper()
	file := tempFile(t, "accel.yaml", strings.Join(lines, "\n")+"\n")
	return "--config.file=" + file
}

// podDevice has patterns for a pod and its device.
type podDevice struct{ device, pod string }

// has returns a pattern for a series of the allocation with a value.
func (h podDevice) has(family, v string) string {
	namespace, pod, _ := strings.Cut(h.pod, "/")
	return fmt.Sprintf(`^accel_allocation_%s\{.*device="%s",.*namespace="%s",.*pod="%s",.*\} %s$`, family, h.device, namespace, pod, v)
}

// allocationsOf returns the allocations of the scenario h100-8.
func allocationsOf(t testing.TB, page string) map[string]podDevice {
	t.Helper()
	return map[string]podDevice{
		"whole":  {device(t, page, "0"), "training/llm-0"},
		"mig":    {`MIG-[^"]+`, "research/segment-0"},
		"claim":  {`MIG-[^"]+`, "research/probe-0"},
		"shared": {device(t, page, "5"), "analytics/simulate-0"},
		"sharer": {device(t, page, "5"), "analytics/explore-0"},
		"idle":   {device(t, page, "6"), "notebooks/jupyter-large-0"},
		"unused": {`MIG-[^"]+`, "notebooks/jupyter-small-0"},
		"free":   {device(t, page, "7"), ".*"},
	}
}

// TestUnattributedProcesses checks that processes that use a device without an
// allocation are counted by reason.
func TestUnattributedProcesses(t *testing.T) {
	t.Parallel()
	n := startPods(t, scenario, nil, often)
	of := allocationsOf(t, n.until(`^accel_podmap_state\{state="fresh"\} 1$`, `^accel_unattributed_processes`))
	count := func(h podDevice, reason, v string) string {
		return `^accel_unattributed_processes\{device="` + h.device + `",reason="` + reason + `"\} ` + v + `$`
	}
	n.sim("inject", "process-start", "71001", "6", "--pod=llm-0")
	n.sim("inject", "process-start", "71002", "7", "--name=/usr/bin/nvtop")
	// Without its log directory, the name of a pod is unknown: a cgroup has only
	// the pod's UID.
	n.sim("inject", "pod-start", "ml/nameless-0")
	logs, err := filepath.Glob(filepath.Join(sim.PodLogs(n.state), "ml_nameless-0_*"))
	if err != nil || len(logs) != 1 {
		t.Fatalf("logs of the pod: %v, %v", logs, err)
	}
	if err := os.RemoveAll(logs[0]); err != nil {
		t.Fatal(err)
	}
	n.sim("inject", "process-start", "71003", "0", "--pod=nameless-0")
	n.until(count(of["idle"], "other_pod", "1"), count(of["free"], "host_process", "1"), count(of["whole"], "other_pod", "0"), count(of["whole"], "unknown_pod", "1"))
	n.sim("inject", "process-end", "71001")
	n.sim("inject", "process-end", "71002")
	n.sim("inject", "process-end", "71003")
	n.until(`^accel_unattributed_processes`, `!^accel_unattributed_processes\{.*\} [1-9]`)
}

// TestOwnProcesses: the host's procfs does not help in a container with its own PID
// namespace, because the driver reports PIDs of that namespace.
func TestOwnProcesses(t *testing.T) {
	for namespace, want := range map[string]bool{"pid:[4026531836]": true, "pid:[4026532201]": false, "": true} {
		procfs := t.TempDir()
		if namespace != "" {
			if err := errors.Join(os.MkdirAll(filepath.Join(procfs, "self/ns"), 0o755), os.Symlink(namespace, filepath.Join(procfs, "self/ns/pid"))); err != nil {
				t.Fatal(err)
			}
		}
		if got := ownProcesses(procfs); got != want {
			t.Errorf("%q: %v, want %v", namespace, got, want)
		}
	}
}
