package sim

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// patience guards against a hang; nothing is measured by it.
const patience = 2 * time.Minute

// rig is a simulated node of Kubernetes with a client of its kubelet.
type rig struct {
	t      *testing.T
	state  string
	client podresources.PodResourcesListerClient
}

func serving(t *testing.T, scenario string) *rig {
	t.Helper()
	state, _ := installed(t, scenario)
	ctx, cancel := context.WithCancel(t.Context())
	wait, err := ServeKubelet(ctx, state)
	if err != nil {
		t.Fatal(err)
	}
	again := backoff.Config{BaseDelay: time.Millisecond, Multiplier: 2, MaxDelay: 50 * time.Millisecond}
	conn, err := grpc.NewClient("unix:"+KubeletSocket(state),
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithConnectParams(grpc.ConnectParams{Backoff: again, MinConnectTimeout: patience}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(); cancel(); wait() })
	return &rig{t, state, podresources.NewPodResourcesListerClient(conn)}
}

// list returns the kubelet's list: a line for each device of a container, and
// for a pod without devices.
func (n *rig) list(ctx context.Context) ([]string, error) {
	resp, err := n.client.List(ctx, &podresources.ListPodResourcesRequest{})
	lines := []string{}
	for _, p := range resp.GetPodResources() {
		name, bare := p.GetNamespace()+"/"+p.GetName(), true
		for _, c := range p.GetContainers() {
			for _, d := range c.GetDevices() {
				lines, bare = append(lines, name+" "+c.GetName()+" "+d.GetResourceName()+" "+strings.Join(d.GetDeviceIds(), ",")), false
			}
			for _, d := range c.GetDynamicResources() {
				for _, r := range d.GetClaimResources() {
					lines, bare = append(lines, name+" "+c.GetName()+" "+r.GetDriverName()+" "+r.GetDeviceName()), false
				}
			}
		}
		if bare {
			lines = append(lines, name)
		}
	}
	slices.Sort(lines)
	return lines, err
}

// until lists until ok is true. An edit reaches the kubelet through inotify.
func (n *rig) until(what string, ok func(lines []string, code codes.Code) bool) {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(n.t.Context(), patience)
	defer cancel()
	for {
		lines, err := n.list(ctx)
		if ok(lines, status.Code(err)) {
			return
		}
		if ctx.Err() != nil {
			n.t.Fatalf("%s: %v, %v", what, lines, err)
		}
		time.Sleep(time.Millisecond)
	}
}

// after injects a fault and lists until ok is true.
func (n *rig) after(words string, ok func(lines []string, code codes.Code) bool) {
	n.t.Helper()
	strike(n.t, n.state, words)
	n.until(words, ok)
}

func has(parts ...string) func([]string, codes.Code) bool {
	return func(lines []string, code codes.Code) bool {
		return code == codes.OK && !slices.ContainsFunc(parts, func(p string) bool {
			name, negative := strings.CutPrefix(p, "!")
			return slices.ContainsFunc(lines, func(l string) bool { return strings.Contains(l, name) }) == negative
		})
	}
}

// lists accepts a list of these lines only.
func lists(want ...string) func([]string, codes.Code) bool {
	return func(lines []string, code codes.Code) bool { return code == codes.OK && slices.Equal(lines, want) }
}

func fails(want codes.Code) func([]string, codes.Code) bool {
	return func(_ []string, got codes.Code) bool { return got == want }
}

func (n *rig) allocatable() map[string][]string {
	n.t.Helper()
	resp, err := n.client.GetAllocatableResources(n.t.Context(), &podresources.AllocatableResourcesRequest{})
	if err != nil {
		n.t.Fatal(err)
	}
	out := map[string][]string{}
	for _, d := range resp.GetDevices() {
		out[d.GetResourceName()] = append(out[d.GetResourceName()], d.GetDeviceIds()...)
	}
	for _, ids := range out {
		slices.Sort(ids)
	}
	return out
}

// The lists of the kubelet of h100-8.
func TestServeKubelet(t *testing.T) {
	n := serving(t, "h100-8")
	s := stateOf(t, n.state)
	gpu := func(i int) string { return s.gpuGet(i, "uuid") }
	mig := func(i int) string { return s.deviceUUID(device{4, i}) }
	want := []string{
		"kube-system/nvidia-device-plugin-daemonset-9xw4c", "kube-system/kube-apiserver-node",
		"training/llm-0 worker nvidia.com/gpu " + gpu(0), "training/llm-0 worker nvidia.com/gpu " + gpu(1), "training/llm-0 worker nvidia.com/gpu " + gpu(2),
		"inference/chat-6b9f7d5c4-tq8zn server nvidia.com/gpu " + gpu(3),
		"research/segment-0 main nvidia.com/mig-3g.40gb " + mig(0), "research/speech-0 main nvidia.com/mig-2g.20gb " + mig(1),
		"notebooks/jupyter-small-0 notebook nvidia.com/mig-1g.10gb " + mig(2), "research/probe-0 main gpu.nvidia.com gpu-4-mig-1g10gb-19-3",
		"analytics/simulate-0 main nvidia.com/gpu.shared " + gpu(5) + "::0", "analytics/explore-0 main nvidia.com/gpu.shared " + gpu(5) + "::1",
		"notebooks/jupyter-large-0 notebook nvidia.com/gpu " + gpu(6),
	}
	slices.Sort(want)
	got, err := n.list(t.Context())
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v, (-want +got):\n%s", err, diff)
	}
	offered := map[string][]string{
		"nvidia.com/gpu":         {gpu(0), gpu(1), gpu(2), gpu(3), gpu(6), gpu(7)},
		"nvidia.com/gpu.shared":  {gpu(5) + "::0", gpu(5) + "::1", gpu(5) + "::2", gpu(5) + "::3"},
		"nvidia.com/mig-3g.40gb": {mig(0)}, "nvidia.com/mig-2g.20gb": {mig(1)}, "nvidia.com/mig-1g.10gb": {mig(2)},
	}
	for _, ids := range offered {
		slices.Sort(ids)
	}
	if diff := cmp.Diff(offered, n.allocatable()); diff != "" {
		t.Errorf("allocatable (-want +got):\n%s", diff)
	}

	// A device plugin drops an unhealthy device with its partitions; a Xid
	// caused by an application does not make it unhealthy.
	strike(t, n.state, "device-unhealthy 5")
	strike(t, n.state, "device-unhealthy mig:4/1")
	strike(t, n.state, "lost 7")
	strike(t, n.state, "xid 79 0")
	strike(t, n.state, "xid 31 1")
	strike(t, n.state, "xid 63 4/2")
	strike(t, n.state, "lost 3")
	strike(t, n.state, "device-healthy 3")
	n.after("pod-start mark/unhealthy gpu:6", has("mark/unhealthy"))
	for id, there := range map[string]bool{gpu(5) + "::0": false, gpu(5) + "::3": false, mig(1): false, gpu(7): false, gpu(6): true, mig(0): true, gpu(0): false, gpu(1): true, mig(2): false, gpu(3): true} {
		if slices.ContainsFunc([]string{"nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-2g.20gb", "nvidia.com/mig-3g.40gb", "nvidia.com/mig-1g.10gb"}, func(r string) bool {
			return slices.Contains(n.allocatable()[r], id)
		}) != there {
			t.Errorf("%s: allocatable is %t", id, !there)
		}
	}
	strike(t, n.state, "device-healthy 5")
	strike(t, n.state, "plugin-down nvidia.com/mig-*")
	n.after("pod-start mark/plugin gpu:1", has("mark/plugin", "research/segment-0 main nvidia.com/mig-3g.40gb "))
	if got := slices.Sorted(maps.Keys(n.allocatable())); !slices.Equal(got, []string{"nvidia.com/gpu", "nvidia.com/gpu.shared"}) {
		t.Errorf("without a plugin for MIG devices these are allocatable: %v", got)
	}
	strike(t, n.state, "pod-end mark/plugin")
	n.after("clear all", has("!mark/unhealthy"))
	if diff := cmp.Diff(offered, n.allocatable()); diff != "" {
		t.Errorf("allocatable again (-want +got):\n%s", diff)
	}
}

// A pod is listed from its start until its end, or its deletion.
func TestKubeletFollowsPods(t *testing.T) {
	n := serving(t, "h100-8")
	n.after("pod-start ml/late-0 replica:5::2", has("ml/late-0 main nvidia.com/gpu.shared GPU-"))
	strike(t, n.state, "pod-finish ml/late-0")
	n.after("pod-start ml/next-0 gpu:7", has("ml/late-0 main", "ml/next-0 main nvidia.com/gpu GPU-"))
	n.after("pod-end ml/late-0", has("!ml/late-0", "ml/next-0"))
	n.after("pod-finish ml/next-0 --no-listed", has("!ml/next-0"))
	n.after("pod-evict speech-0", has("!research/speech-0", "research/segment-0"))
	for _, name := range []string{"ml_next-0_", "research_speech-0_"} {
		if !slices.ContainsFunc(podDirs(t, n.state), func(d string) bool { return strings.HasPrefix(d, name) }) {
			t.Errorf("the logs of %s, which has finished, are gone", name)
		}
	}
}
