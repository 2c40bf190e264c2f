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

// some matches any value but 0, share a value from 0.01 to 1.
const (
	some  = `[0-9.e+]*[1-9][0-9.e+]*`
	share = `(0\.(0[1-9]|[1-9])\d*|1)`
)

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

// TestHolders checks the usage by pod of a whole GPU, of a MIG device from a
// device plugin and from a claim, and of a GPU that two pods share.
func TestHolders(t *testing.T) {
	t.Parallel()
	n := startPods(t, scenario, nil)
	page := n.until(`^accel_podmap_state\{state="fresh"\} 1$`, `^accel_device_up\{.*\} 1$`)
	of := allocationsOf(t, page)
	page = n.until(
		of["whole"].has("info", "1"), of["whole"].has("utilization_ratio", share), of["whole"].has("memory_used_bytes", `7\.516192768e\+10`), of["whole"].has("power_watts", some),
		of["mig"].has("info", "1"), of["mig"].has("utilization_ratio", share), of["mig"].has("memory_used_bytes", `3\.221225472e\+10`), "!"+of["mig"].has("power_watts", ".*"),
		of["claim"].has("info", "1"), of["claim"].has("utilization_ratio", share), of["claim"].has("memory_used_bytes", `2\.147483648e\+09`),
		of["shared"].has("info", "1"), of["shared"].has("utilization_ratio", share), of["shared"].has("memory_used_bytes", `1\.7179869184e\+10`), "!"+of["shared"].has("power_watts", ".*"),
		of["sharer"].has("info", "1"), of["sharer"].has("utilization_ratio", share), of["sharer"].has("memory_used_bytes", `4\.294967296e\+09`),
		of["idle"].has("memory_used_bytes", `1\.2884901888e\+10`), of["idle"].has("utilization_ratio", "0"), "!"+of["free"].has("info", ".*"),
		`^accel_device_holders\{device="`+of["shared"].device+`"\} 2$`, `^accel_device_holders\{device="`+of["free"].device+`"\} 0$`,
		`!^accel_device_holders\{device="`+device(t, page, "4")+`"\}`, // which is partitioned
		`^accel_podmap_allocations\{kind="listed"\} 11$`, `^accel_podmap_allocations\{kind="unresolved"\} 0$`,
		`!^accel_unattributed_processes\{.*\} [1-9]`,
	)
	if a, b := value(t, page, series(of["shared"], "utilization_ratio")), value(t, page, series(of["sharer"], "utilization_ratio")); a <= b {
		t.Errorf("utilization is %g for the pod with 70 %% of the work and %g for the other", a, b)
	}
}

// series returns a pattern for value.
func series(h podDevice, family string) string {
	namespace, pod, _ := strings.Cut(h.pod, "/")
	return fmt.Sprintf(`accel_allocation_%s\{.*device="%s",.*namespace="%s",.*pod="%s",.*\}`, family, h.device, namespace, pod)
}

// TestIdle checks that only idle pods have idle time and its cost, and that idleness
// ends when the pod becomes active.
func TestIdle(t *testing.T) {
	t.Parallel()
	n := startPods(t, scenario, nil, often, configured(t, "allocation:", "  idle: {grace: 0s}", "  currency: EUR", "  prices: [{per_hour: 3600}]"))
	of := allocationsOf(t, n.until(`^accel_podmap_state\{state="fresh"\} 1$`, `^accel_device_up\{.*\} 1$`))
	idle := of["idle"]
	n.until(idle.has("idle_seconds", some), idle.has("idle_seconds_total", some), idle.has("idle_cost_total", some), idle.has("idle_since_timestamp_seconds", some),
		of["unused"].has("idle_seconds", some), "!"+of["unused"].has("last_activity_timestamp_seconds", ".*"))
	n.until(of["whole"].has("idle_seconds", "0"), of["whole"].has("idle_seconds_total", "0"), of["whole"].has("idle_cost_total", "0"), of["whole"].has("last_activity_timestamp_seconds", some))
	n.sim("inject", "process-start", "57001", "6", "--pod=jupyter-large-0", "--load=0.8")
	n.until(idle.has("idle_seconds", "0"), "!"+idle.has("idle_since_timestamp_seconds", ".*"), idle.has("last_activity_timestamp_seconds", some), idle.has("idle_seconds_total", some))
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

// TestOwnProcesses: the host's procfs does not help in a container with PIDs of its own,
// because the driver reports those.
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
