package kubelet_test

import (
	"encoding/json"
	"os"

	"github.com/accel-exporter/accel-exporter/podmap"
)

// pod is a static pod. Its name in the cluster is that of the node longer.
type pod struct {
	name       string
	team       string // a label
	once       bool   // not started again
	claim      string // that its containers may use
	init       []container
	containers []container
}

type container struct {
	name    string
	sidecar bool           // of init: goes on beside the others
	devices map[string]int // resource: count
	request string         // of the pod's claim, which this container uses
}

// secret is in the environment of every container.
const secret = "hunter2"

// self is the exporter's own pod.
var self = pod{name: "accel-exporter", containers: []container{{name: "main"}}}

// selfPod is self as the kubelet lists it.
var selfPod = podmap.Pod{Namespace: "ml", Name: self.name + "-" + nodeName}

// simple is a pod of one container.
func simple(name, resource string, count int) pod {
	return pod{name: name, containers: []container{{name: "main", devices: map[string]int{resource: count}}}}
}

// create has the kubelet run pods.
func (n *node) create(pods ...pod) {
	n.t.Helper()
	for _, p := range pods {
		data, err := json.Marshal(p.manifest())
		must(n.t, err)
		// The kubelet would read half a file.
		must(n.t, os.WriteFile(n.path("tmp/"+p.name), data, 0o600))
		must(n.t, os.Rename(n.path("tmp/"+p.name), n.path("manifests/"+p.name+".json")))
	}
}

// remove has the kubelet end pods.
func (n *node) remove(names ...string) {
	n.t.Helper()
	for _, name := range names {
		must(n.t, os.Remove(n.path("manifests/"+name+".json")))
	}
}

func (p pod) manifest() map[string]any {
	restart := "Always"
	if p.once {
		restart = "Never"
	}
	return map[string]any{
		"apiVersion": "v1",
		"kind":       "Pod",
		"metadata":   map[string]any{"name": p.name, "namespace": "ml", "labels": map[string]any{"team": p.team}},
		"spec": map[string]any{
			"restartPolicy":                 restart,
			"terminationGracePeriodSeconds": 1,
			"initContainers":                manifests(p.init),
			"containers":                    manifests(p.containers),
		},
	}
}

func manifests(containers []container) (list []map[string]any) {
	for _, c := range containers {
		m := map[string]any{
			"name": c.name, "image": "scratch.local/" + c.name + ":1", "imagePullPolicy": "IfNotPresent",
			"resources": map[string]any{"limits": c.devices, "requests": c.devices},
			"env":       []any{map[string]any{"name": "TOKEN", "value": secret}},
		}
		if c.request != "" {
			m["resources"].(map[string]any)["claims"] = []any{map[string]any{"name": "claim", "request": c.request}}
		}
		if c.sidecar {
			m["restartPolicy"] = "Always"
		}
		list = append(list, m)
	}
	return list
}

// bound returns the pod as the API server has it once it is bound to the node,
// with what that server fills in.
func (p pod) bound() map[string]any {
	m := p.manifest()
	spec := m["spec"].(map[string]any)
	spec["nodeName"], spec["dnsPolicy"], spec["enableServiceLinks"] = nodeName, "Default", false
	spec["securityContext"], spec["schedulerName"] = map[string]any{}, "default-scheduler"
	spec["automountServiceAccountToken"] = false
	for _, list := range []string{"initContainers", "containers"} {
		for _, c := range spec[list].([]map[string]any) {
			c["terminationMessagePath"], c["terminationMessagePolicy"] = "/dev/termination-log", "File"
		}
	}
	if p.claim != "" {
		spec["resourceClaims"] = []any{map[string]any{"name": "claim", "resourceClaimName": p.claim}}
	}
	return m
}
