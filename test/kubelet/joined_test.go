package kubelet_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/accel-exporter/accel-exporter/podmap"
	"github.com/accel-exporter/accel-exporter/podmap/kube"
)

// join returns the node of the cluster, whose kubelet has not been started.
func (c *cluster) join() *node {
	c.t.Helper()
	n := newNodeIn(c.t, c.net)
	n.configure(map[string]any{"registerNode": true})
	cert, err := os.ReadFile(c.path("cert"))
	must(c.t, err)
	must(c.t, os.WriteFile(n.path("ca.crt"), cert, 0o600))
	n.kubeconfig(map[string]any{"server": apiAddress, "certificate-authority": home + "/ca.crt"}, map[string]any{"token": nodeToken})
	return n
}

// schedule makes a pod and binds it to the node, as a scheduler does once its
// claim is its own. It returns the pod's UID.
func (c *cluster) schedule(p pod) string {
	c.t.Helper()
	m := p.bound()
	delete(m["spec"].(map[string]any), "nodeName")
	id := text(c.do(http.MethodPost, mlPods, m), "metadata", "uid")
	if p.claim != "" {
		path := claims + "/" + p.claim
		claim := c.do(http.MethodGet, path, nil)
		status := claim["status"].(object)
		users, _ := status["reservedFor"].([]any)
		status["reservedFor"] = append(users, object{"resource": "pods", "name": p.name, "uid": id})
		c.do(http.MethodPut, path+"/status", claim)
	}
	c.do(http.MethodPost, mlPods+"/"+p.name+"/binding", object{"metadata": object{"name": p.name}, "target": object{"kind": "Node", "name": nodeName}})
	return id
}

const claims = "/apis/resource.k8s.io/v1/namespaces/ml/resourceclaims"

// claim makes a claim to which devices of a driver are allocated, in answer to
// its requests r0, r1 and so on.
func (c *cluster) claim(d *driver, name string, devices ...string) {
	c.t.Helper()
	requests, results, prepared := d.allocate(devices)
	o := c.do(http.MethodPost, claims, object{
		"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": object{"name": name},
		"spec": object{"devices": object{"requests": requests}},
	})
	d.prepare(text(o, "metadata", "uid"), prepared)
	o["status"] = object{"allocation": object{"devices": object{"results": results}}}
	c.do(http.MethodPut, claims+"/"+name+"/status", o)
}

// podToken returns the token that the kubelet has put into a pod, with the
// certificates to trust.
func (n *node) podToken(uid string) (token, ca string) {
	n.t.Helper()
	volumes := fmt.Sprintf("/proc/%d/root%s/pods/%s/volumes/kubernetes.io~projected/", n.run.cmd.Process.Pid, home, uid)
	read := func(name string) string {
		found, _ := filepath.Glob(volumes + "*/" + name)
		if len(found) != 1 {
			return ""
		}
		data, _ := os.ReadFile(found[0])
		return string(data)
	}
	n.await("the kubelet has put a token into the pod", func() bool {
		token, ca = read("token"), read("ca.crt")
		return token != "" && ca != ""
	})
	return token, ca
}

// Pods with devices of DRA drivers, from the claim to the machine's device:
// with the API server's help by the attributes that the driver publishes,
// without it by the device's name. Then the API server goes away, the kubelet
// starts again without it, and it comes back.
func TestClusterClaims(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.permit()
	c.do(http.MethodPost, "/api/v1/namespaces/"+exporter+"/configmaps", object{
		"metadata": object{"name": "kube-root-ca.crt"}, "data": object{"ca.crt": c.read("cert")},
	})
	before := c.do(http.MethodPost, slices1, slice("before.example.com", nodeName, 1, object{"name": "a"}))
	n := c.join()
	n.start()
	self := podmap.Pod{Namespace: exporter, Name: exporter}
	w := n.watch(podmap.Options{Self: self})
	named := &driver{name: "gpu.nvidia.com"}
	nameless := &driver{name: "gpus.example.com"}
	n.drive(named)
	n.drive(nameless)

	word := func(s string) object { return object{"string": s} }
	published := []object{
		slice(named.name, nodeName, 1,
			object{"name": "gpu-0", "attributes": object{"type": word("gpu"), "uuid": word(gpuID(0)), "minor": object{"int": 0}}},
			object{"name": "gpu-1", "attributes": object{"type": word("gpu"), "uuid": word(gpuID(1)), "minor": object{"int": 1}}}),
		slice(nameless.name, nodeName, 1,
			object{"name": "left", "attributes": object{"uuid": word(gpuID(2))}},
			object{"name": "right", "attributes": object{"resource.kubernetes.io/pciBusID": word("0000:1b:00.0"), "resource.kubernetes.io/pcieRoot": word("pci0000:1a")}}),
	}
	publish := func() {
		for _, s := range published {
			c.do(http.MethodPost, slices1, s)
		}
	}
	// What is published before the kubelet has deleted those would go with them.
	n.await("the kubelet has deleted the slices of its node", func() bool {
		code, _, err := c.ask(http.MethodGet, slices1+"/"+text(before, "metadata", "name"), adminToken, nil)
		return err == nil && code == http.StatusNotFound
	})
	publish()

	exporterPod := pod{name: exporter, containers: []container{{name: "main"}}}.bound()
	spec := exporterPod["spec"].(map[string]any)
	exporterPod["metadata"].(map[string]any)["namespace"] = exporter
	spec["serviceAccountName"] = exporter
	delete(spec, "automountServiceAccountToken")
	made := c.do(http.MethodPost, "/api/v1/namespaces/"+exporter+"/pods", exporterPod)
	token, ca := n.podToken(text(made, "metadata", "uid"))
	if ca != c.read("cert") {
		t.Errorf("certificates in the pod: %s", ca)
	}
	c.writeToken(token) // where it outlives the kubelet's mount namespace
	meta := c.meta(t, kube.Options{})
	w.await("the exporter is listed", "fresh")

	main := []container{{name: "main", request: "r0"}}
	c.claim(named, "pair", "gpu-0", "gpu-1")
	c.claim(nameless, "left", "left")
	c.claim(nameless, "right", "right")
	pods := []pod{
		{name: "train", claim: "pair", containers: []container{{name: "main", request: "r0"}, {name: "side", request: "r1"}, {name: "logs"}}},
		{name: "serve", claim: "left", containers: main},
		{name: "twin", claim: "left", containers: main},
		{name: "batch", claim: "right", containers: main},
	}
	uids := map[string]string{}
	for _, p := range pods {
		uids[p.name] = c.schedule(p)
	}
	n.create(pod{name: "static", containers: []container{{name: "main"}}})
	// The kubelet lists every device of a claim on each container that uses one
	// of its requests, and on each pod that shares the claim.
	held := []string{"gpu-0: train main,side", "gpu-1: train main,side", "left: serve main shared", "left: twin main shared", "right: batch main"}
	m := w.await("every claim has its devices", append([]string{"fresh"}, held...)...)
	n.awaitRunning(append(pods, pod{name: "static"})...)
	known := meta.await(t, "the API server knows them too", func(m *kube.Map) bool {
		return in("fresh", "fresh")(m) && len(m.Devices) == 4 && len(m.Pods) == 6
	})

	for _, h := range m.Allocations {
		if p, ok := known.Pod(h.Pod.Namespace, h.Pod.Name); !ok || p.UID != uids[h.Pod.Name] {
			t.Errorf("%s: %+v, want UID %s", h.Pod.Name, p, uids[h.Pod.Name])
		}
	}
	n.found("without the API server", m, new(kube.Map), "train: "+gpuID(0)+" name", "train: "+gpuID(1)+" name", "serve:  unknown", "twin:  unknown", "batch:  unknown")
	all := []string{"train: " + gpuID(0) + " name", "train: " + gpuID(1) + " name", "serve: " + gpuID(2) + " name", "twin: " + gpuID(2) + " name", "batch: " + gpuID(3) + " name"}
	n.found("with the API server", m, known, all...)

	c.down()
	meta.await(t, "the API server is down", in("stale", "stale"))
	n.end(syscall.SIGKILL)
	w.await("the kubelet is down", append([]string{"stale"}, held...)...)
	w.shown()
	n.start()
	kept := []string{"unconfirmed"}
	for _, h := range held {
		kept = append(kept, h+" kept")
	}
	w.await("the kubelet is up without the API server", kept...)
	w.steady("without the API server", m)
	n.found("without the API server, from memory", w.w.Latest(), meta.Latest(), all...)

	c.up()
	w.await("the API server is up", append([]string{"fresh"}, held...)...)
	w.steady("with the API server", m)
	n.await("the kubelet has deleted the slices of its node", func() bool { return len(c.list(slices1)) == 0 })
	n.found("without slices", w.w.Latest(), meta.Latest(), all...)
	publish()
	known = meta.await(t, "the drivers have published them again", in("fresh", "fresh"))
	n.found("with slices again", w.w.Latest(), known, all...)
}

func (c *cluster) read(name string) string {
	c.t.Helper()
	data, err := os.ReadFile(c.path(name))
	must(c.t, err)
	return string(data)
}

// found checks which devices of the machine the holders have, by what is
// known of the drivers' devices.
func (n *node) found(when string, m *podmap.Map, known *kube.Map, want ...string) {
	n.t.Helper()
	index := new(podmap.Resolver).Index([]podmap.Known{
		{ID: gpuID(0), Vendor: "nvidia", PCI: "0000:18:00.0", KubeIDs: []string{"nvidia0"}},
		{ID: gpuID(1), Vendor: "nvidia", PCI: "0000:19:00.0", KubeIDs: []string{"nvidia1"}},
		{ID: gpuID(2), Vendor: "nvidia", PCI: "0000:1a:00.0", KubeIDs: []string{"nvidia2"}},
		{ID: gpuID(3), Vendor: "nvidia", PCI: "0000:1b:00.0", KubeIDs: []string{"nvidia3"}},
	})
	var got []string
	for _, h := range m.Allocations {
		d, _ := known.Device(h.Resource, h.Pool, h.DeviceID)
		id, how := index.ResolveDRA(h, podmap.SliceDevice{UUID: d.UUID, PCI: d.PCI, Partition: d.ParentUUID != ""})
		got = append(got, fmt.Sprintf("%s: %s %s", h.Pod.Name, id, how))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		n.t.Errorf("devices %s (-want +got):\n%s", when, diff)
	}
}
