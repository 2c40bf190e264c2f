package kubelet_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// guard ends a wait for what will never come.
const guard = 5 * time.Minute

const nodeName = "node1"

// config is the kubelet's, but for what a test may change.
var config = map[string]any{
	"apiVersion":               "kubelet.config.k8s.io/v1beta1",
	"kind":                     "KubeletConfiguration",
	"staticPodPath":            home + "/manifests",
	"containerRuntimeEndpoint": "unix://" + home + "/cri.sock",
	"imageServiceEndpoint":     "unix://" + home + "/cri.sock",
	"volumePluginDir":          home + "/volume-plugins",
	"maxPods":                  250,
	// No port, no one to ask for leave.
	"enableServer":   false,
	"healthzPort":    0,
	"authentication": map[string]any{"anonymous": map[string]any{"enabled": true}, "webhook": map[string]any{"enabled": false}},
	"authorization":  map[string]any{"mode": "AlwaysAllow"},
	"registerNode":   false,
	// Nothing of the machine is written or weighed.
	"cgroupDriver":                  "cgroupfs",
	"cgroupsPerQOS":                 false,
	"enforceNodeAllocatable":        []string{},
	"failCgroupV1":                  false,
	"failSwapOn":                    false,
	"localStorageCapacityIsolation": false,
	"oomScoreAdj":                   0,
	"makeIPTablesUtilChains":        false,
	"resolvConf":                    "",
	"runtimeRequestTimeout":         "2m",
	"imageGCHighThresholdPercent":   100,
	"imageGCLowThresholdPercent":    99,
	"evictionHard": map[string]string{
		"memory.available": "0%", "nodefs.available": "0%", "nodefs.inodesFree": "0%",
		"imagefs.available": "0%", "imagefs.inodesFree": "0%",
	},
}

// node is a machine of a cluster without a control plane.
type node struct {
	t    *testing.T
	root string // what the kubelet sees as its home
	kube string // the kubelet's binary
	args []string
	net  *network
	cri  *cri
	run  *process // nil while the kubelet is down
}

// newNode returns a node whose kubelet has not been started, in its own
// network.
func newNode(t *testing.T) *node {
	t.Helper()
	needs(t)
	net, err := newNetwork()
	must(t, err)
	t.Cleanup(func() { net.Close() })
	return newNodeIn(t, net)
}

func newNodeIn(t *testing.T, net *network) *node {
	t.Helper()
	kube := needs(t)
	// A socket's path may have 108 bytes, so this is not below t.TempDir.
	root, err := os.MkdirTemp("", "kl")
	must(t, err)
	n := &node{t: t, root: root, kube: kube, net: net}
	t.Cleanup(func() { must(t, os.RemoveAll(root)) })
	for _, dir := range []string{"manifests", "tmp"} {
		must(t, os.Mkdir(n.path(dir), 0o755))
	}
	n.configure(nil)
	n.cri = serveCRI(t, n.path("cri.sock"))
	t.Cleanup(func() {
		n.end(syscall.SIGKILL)
		if t.Failed() {
			t.Logf("the kubelet's last words:\n%s", tail(n.path("log")))
		}
	})
	return n
}

// startNode returns a node whose kubelet runs and lists this exporter's pod.
func startNode(t *testing.T) *node {
	t.Helper()
	n := newNode(t)
	n.start()
	n.create(self)
	return n
}

// configure writes the kubelet's configuration, with some values other than
// usual.
func (n *node) configure(other map[string]any) {
	n.t.Helper()
	c := maps.Clone(config)
	maps.Copy(c, other)
	n.write("config.json", c)
}

// kubeconfig gives the kubelet an API server, and itself as a user of it.
func (n *node) kubeconfig(server, user map[string]any) {
	n.t.Helper()
	n.args = []string{"--kubeconfig=" + home + "/kubeconfig"}
	n.write("kubeconfig", kubeconfig(server, user))
}

// write writes a file of JSON.
func (n *node) write(name string, content any) {
	n.t.Helper()
	data, err := json.Marshal(content)
	must(n.t, err)
	must(n.t, os.WriteFile(n.path(name), data, 0o600))
}

func (n *node) path(name string) string { return filepath.Join(n.root, name) }

// start starts the kubelet. It does not wait for it to answer.
func (n *node) start() {
	n.t.Helper()
	kube, err := os.Open(n.kube)
	must(n.t, err)
	defer kube.Close()
	log, err := os.OpenFile(n.path("log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	must(n.t, err)
	defer log.Close()
	cmd := command(n.root, append([]string{"--config=" + home + "/config.json", "--hostname-override=" + nodeName, "--node-ip=" + nodeIP, "--v=2"}, n.args...)...)
	cmd.ExtraFiles = []*os.File{kube}
	cmd.Stdout, cmd.Stderr = log, log
	n.run, err = n.net.start(cmd)
	must(n.t, err)
}

// end ends the kubelet by a signal and waits until it has.
func (n *node) end(sig syscall.Signal) {
	n.t.Helper()
	if n.run == nil {
		return
	}
	n.run.signal(sig)
	select {
	case <-n.run.done:
	case <-time.After(guard):
		n.run.signal(syscall.SIGKILL)
		n.t.Errorf("the kubelet did not end by %v", sig)
		<-n.run.done
	}
	n.run = nil
}

// await returns when the condition is true.
func (n *node) await(what string, done func() bool) {
	n.t.Helper()
	await(n.t, what, n.run, done)
}

// await returns when the condition is true. It fails the test where a program
// that is needed for that has ended; there may be none.
func await(t *testing.T, what string, needed *process, done func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	late := time.After(guard)
	var died <-chan struct{}
	if needed != nil {
		died = needed.done
	}
	for !done() {
		select {
		case <-tick.C:
		case <-died:
			t.Fatalf("%s ended before %s", filepath.Base(needed.cmd.Args[0]), what)
		case <-late:
			t.Fatalf("waited %v in vain until %s", guard, what)
		}
	}
}

// tail returns the end of a log.
func tail(name string) string {
	data, _ := os.ReadFile(name)
	lines := strings.Split(string(bytes.TrimSpace(data)), "\n")
	return strings.Join(lines[max(0, len(lines)-60):], "\n")
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(fmt.Errorf("prepare the node: %w", err))
	}
}
