package kubelet_test

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/accel-exporter/accel-exporter/podmap/kube"
)

// owned is a pod with labels, made by a controller of that kind and name.
func owned(name, node, kind, controller string, labels map[string]string) object {
	m := pod{name: name, containers: []container{{name: "main"}}}.bound()
	meta, spec := m["metadata"].(map[string]any), m["spec"].(map[string]any)
	meta["labels"], spec["nodeName"] = labels, node
	if kind != "" {
		meta["ownerReferences"] = []any{object{
			"apiVersion": "apps/v1", "kind": kind, "name": controller, "uid": "uid-of-" + controller, "controller": true,
		}}
	}
	return m
}

// fill makes pods on the node and returns what is expected of them.
func (c *cluster) fill(prefix string, count int) []kube.Pod {
	c.t.Helper()
	minutes := time.Now().Unix() / 60
	want := make([]kube.Pod, count)
	for i := range want {
		p := &want[i]
		*p = kube.Pod{
			Namespace: "ml", Name: fmt.Sprintf("%s-%03d", prefix, i),
			Labels: map[string]string{"team": fmt.Sprint("team-", i%7)},
		}
		labels := map[string]string{"team": p.Labels["team"], "secret": "hunter2"}
		switch i % 4 {
		case 0:
			p.Controller, p.Workload = kube.Workload{Kind: "ReplicaSet", Name: "serve-5d8f"}, kube.Workload{Kind: "Deployment", Name: "serve"}
			labels["pod-template-hash"] = "5d8f"
		case 1:
			p.Controller, p.Workload = kube.Workload{Kind: "Job", Name: fmt.Sprint("train-", minutes)}, kube.Workload{Kind: "CronJob", Name: "train"}
		case 2:
			p.Controller = kube.Workload{Kind: "StatefulSet", Name: "store"}
			p.Workload = p.Controller
		}
		p.UID = text(c.do(http.MethodPost, mlPods, owned(p.Name, nodeName, p.Controller.Kind, p.Controller.Name, labels)), "metadata", "uid")
	}
	return want
}

// slice returns a ResourceSlice that is all of the pool named like its node.
func slice(driver, node string, generation int, devices ...object) object {
	return object{
		"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": object{"name": node + "-" + driver},
		"spec": object{
			"driver": driver, "nodeName": node, "devices": devices,
			"pool": object{"name": node, "generation": generation, "resourceSliceCount": 1},
		},
	}
}

// ignored are what the API server sets.
var ignored = cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Created" }, cmp.Ignore())

// What the page lets the exporter do is enough and all that it does; without
// any one verb it reports that, and does the rest.
func TestClusterPermissions(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.permit()
	want := c.fill("pod", 300)
	c.do(http.MethodPost, mlPods, owned("elsewhere", "node2", "", "", nil))
	gpu0 := object{"name": "gpu-0", "attributes": object{"uuid": object{"string": gpuID(0)}}}
	c.do(http.MethodPost, slices1, slice("gpu.nvidia.com", nodeName, 1, gpu0))
	c.do(http.MethodPost, slices1, slice("gpu.nvidia.com", "node2", 1, gpu0))

	opts := kube.Options{Labels: []string{"team"}}
	w := c.meta(t, opts)
	m := w.await(t, "all is listed", in("fresh", "fresh"))
	if diff := cmp.Diff(want, m.Pods, ignored); diff != "" {
		t.Errorf("pods (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]kube.Device{{Driver: "gpu.nvidia.com", Pool: nodeName, Name: "gpu-0", UUID: gpuID(0)}}, m.Devices); diff != "" {
		t.Errorf("devices (-want +got):\n%s", diff)
	}

	// Changes of a pod are reported while it is watched.
	c.do(http.MethodPatch, mlPods+"/pod-000", object{"metadata": object{"labels": object{"team": "another"}}})
	c.do(http.MethodDelete, mlPods+"/pod-001", object{"gracePeriodSeconds": 0})
	c.do(http.MethodPost, mlPods, owned("pod-999", nodeName, "", "", nil))
	w.await(t, "changes are reported", func(m *kube.Map) bool {
		changed, _ := m.Pod("ml", "pod-000")
		gone, _ := m.Pod("ml", "pod-001")
		_, came := m.Pod("ml", "pod-999")
		return came && !gone.Deleted.IsZero() && changed.Labels["team"] == "another"
	})
	c.audited()

	for _, d := range denials {
		t.Run("without "+d.verb+" of "+d.resource, func(t *testing.T) {
			c.allow(d.resource, d.verb)
			w := c.meta(t, opts)
			m := w.await(t, "the states are reported", func(m *kube.Map) bool {
				s := w.Status()
				return in(d.pods, d.slices)(m) && s.Pods.Reason+s.Slices.Reason != ""
			})
			s := w.Status()
			if len(m.Pods) != d.listed || len(m.Devices) != d.devices {
				t.Errorf("%d pods and %d devices, want %d and %d", len(m.Pods), len(m.Devices), d.listed, d.devices)
			}
			if reason := s.Pods.Reason + s.Slices.Reason; !strings.Contains(reason, d.verb+" ") || !strings.Contains(reason, "forbidden") {
				t.Errorf("reason %q", reason)
			}
			c.allow("", "")
			w.await(t, "the permission is back", in("fresh", "fresh"))
		})
	}
}

// denials are the results without a verb: the states, and how many pods and
// devices.
var denials = []struct {
	resource, verb  string
	pods, slices    kube.State
	listed, devices int
}{
	{"pods", "list", "absent", "fresh", 0, 1},
	{"pods", "watch", "stale", "fresh", 300, 1},
	{"resourceslices", "list", "fresh", "absent", 300, 0},
	{"resourceslices", "watch", "fresh", "stale", 300, 1},
}

// allow lets the exporter do all but one verb, or all, and waits until the API
// server acts on it.
func (c *cluster) allow(resource, verb string) {
	c.t.Helper()
	var rules []object
	for _, r := range []struct{ group, resource string }{{"", "pods"}, {"resource.k8s.io", "resourceslices"}} {
		verbs := []string{"list", "watch"}
		if r.resource == resource {
			verbs = slices.DeleteFunc(verbs, func(v string) bool { return v == verb })
		}
		rules = append(rules, object{"apiGroups": []string{r.group}, "resources": []string{r.resource}, "verbs": verbs})
	}
	c.do(http.MethodPatch, roles+"/"+exporter, object{"rules": rules})
	token, err := os.ReadFile(c.path("token"))
	must(c.t, err)
	await(c.t, "the rules are in force", c.api, func() bool {
		for _, path := range []string{"/api/v1/pods", slices1} {
			for _, v := range []string{"list", "watch"} {
				query := "?limit=1"
				if v == "watch" {
					query = "?watch=1&timeoutSeconds=1"
				}
				code, _, err := c.ask(http.MethodGet, path+query, string(token), nil)
				denied := strings.HasSuffix(path, resource) && v == verb
				if resource == "" {
					denied = false
				}
				if err != nil || (code == http.StatusForbidden) != denied {
					return false
				}
			}
		}
		return true
	})
}

// audited checks by the API server's own record that the exporter did nothing
// but what the page lists, and was let do it by the page's role.
func (c *cluster) audited() {
	c.t.Helper()
	did := map[string]bool{}
	for e := range c.audits() {
		did[fmt.Sprintf("%s %s/%s", e.Verb, e.ObjectRef.APIGroup, e.ObjectRef.Resource)] = true
		if !strings.Contains(e.RequestURI, "fieldSelector=spec.nodeName%3D"+nodeName) || e.ObjectRef.Namespace+e.ObjectRef.Name != "" {
			c.t.Errorf("asked for more than the node's: %s", e.RequestURI)
		}
		if e.Annotations["authorization.k8s.io/decision"] != "allow" || !strings.Contains(e.Annotations["authorization.k8s.io/reason"], `of ClusterRole "`+exporter+`"`) {
			c.t.Errorf("%s %s: %v", e.Verb, e.RequestURI, e.Annotations)
		}
	}
	want := []string{"list /pods", "list resource.k8s.io/resourceslices", "watch /pods", "watch resource.k8s.io/resourceslices"}
	if got := slices.Sorted(maps.Keys(did)); !slices.Equal(got, want) {
		c.t.Errorf("did %q, want %q", got, want)
	}
}
