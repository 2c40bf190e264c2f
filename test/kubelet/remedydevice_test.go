package kubelet_test

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

var schedulerBinary = flag.String("kube-scheduler", "", "the scheduler; a test fails where it is not there")

const (
	taintRules = "/apis/resource.k8s.io/v1/devicetaintrules"
	slicesPath = "/apis/resource.k8s.io/v1/resourceslices"
)

// takeDevices sets a policy that takes single devices out with an effect.
func (r *remedy) takeDevices(effect string) {
	r.t.Helper()
	policy := strings.Replace(remedyRules, "health: failed\n", "health: failed\n    device: "+effect+"\n", 1) + "limits: {share: 1}\n"
	must(r.t, os.WriteFile(r.path("policy.yml"), []byte(policy), 0o600))
	r.began = time.Now().Add(-time.Minute) // an alert may end at once
}

// publish makes the ResourceSlice of a node, of a driver whose devices have these UUIDs by
// name, or replaces it.
func (r *remedy) publish(node string, uuids map[string]string) { r.publishIn(node, node, uuids) }

func (r *remedy) publishIn(node, pool string, uuids map[string]string) {
	r.t.Helper()
	devices := []any{}
	for name, uuid := range uuids {
		devices = append(devices, object{"name": name, "attributes": object{"uuid": object{"string": uuid}}})
	}
	slice := object{"metadata": object{"name": node}, "spec": object{
		"driver": "gpu.example.com", "nodeName": node, "pool": object{"name": pool, "generation": 1, "resourceSliceCount": 1}, "devices": devices,
	}}
	code, was, err := r.ask(http.MethodGet, slicesPath+"/"+node, adminToken, nil)
	must(r.t, err)
	if code == http.StatusNotFound {
		r.do(http.MethodPost, slicesPath, slice)
		return
	}
	slice["metadata"] = was["metadata"]
	r.do(http.MethodPut, slicesPath+"/"+node, slice)
}

// manage starts the controller manager, with the controllers that act on rules.
func (r *remedy) manage() {
	r.t.Helper()
	r.userConfig("admin", adminToken)
	r.run("manager.log", program(r.t, *managerBinary, "kube-controller-manager-v*"), "--kubeconfig="+r.path("admin"), "--leader-elect=false", "--secure-port=0",
		"--controllers=garbage-collector-controller,device-taint-eviction-controller,job-controller,resourceclaim-controller")
}

// ruled returns the rules of a device as text: what each selects and its effect.
func (r *remedy) ruled(uuid string) string {
	r.t.Helper()
	var all []string
	for _, o := range r.list(taintRules) {
		rule := o.(object)
		if text(rule, "metadata", "annotations", "accel.health/device") == uuid {
			var place []string
			for _, key := range []string{"driver", "pool", "device"} {
				place = append(place, text(rule, "spec", "deviceSelector", key))
			}
			all = append(all, strings.Join(place, "/")+" "+text(rule, "spec", "taint", "effect"))
		}
	}
	return strings.Join(all, ", ")
}

// claim makes a pod of a node with a claim that has a device.
func (r *remedy) claim(name, node, device string) {
	r.t.Helper()
	r.pod("training", name+"-too", node) // makes the namespace
	const claims = "/apis/resource.k8s.io/v1/namespaces/training/resourceclaims"
	r.do(http.MethodPost, claims, object{"metadata": object{"name": name}, "spec": object{"devices": object{
		"requests": []any{object{"name": "gpu", "exactly": object{"deviceClassName": "gpu"}}},
	}}})
	pod := r.do(http.MethodPost, "/api/v1/namespaces/training/pods", object{
		"metadata": object{"name": name},
		"spec": object{
			"nodeName": node, "resourceClaims": []any{object{"name": "gpu", "resourceClaimName": name}},
			"containers": []any{object{"name": "main", "image": "scratch.local/main:1", "resources": object{"claims": []any{object{"name": "gpu"}}}}},
		},
	})
	r.do(http.MethodPatch, claims+"/"+name+"/status", object{"status": object{
		"allocation":  object{"devices": object{"results": []any{object{"request": "gpu", "driver": "gpu.example.com", "pool": node, "device": device}}}},
		"reservedFor": []any{object{"resource": "pods", "name": name, "uid": text(pod, "metadata", "uid")}},
	}})
}

// One device is taken out, and its node stays as it is. The rule follows the device, has
// no effect when the device is well again, and goes with the node.
func TestRemedyDevice(t *testing.T) {
	t.Parallel()
	r := newRemedy(t, "gpu-node", "plugin-node")
	r.manage()
	r.takeDevices("NoSchedule")
	r.publish("gpu-node", map[string]string{"gpu-0": "GPU-0", "gpu-3": "GPU-3"})
	r.fire(time.Now().Add(time.Hour), "gpu-node")
	r.act("--interval=1s")
	await(t, "the dry run reports its plan", r.remediator, func() bool {
		return r.shows(`accel_remediator_planned_nodes{action="take_out"} 1`)
	})
	if rules := r.list(taintRules); len(rules) > 0 {
		t.Errorf("a dry run has made %v", rules)
	}
	r.end(&r.remediator)
	r.act("--act", "--interval=1s")
	await(t, "the device is out", r.remediator, func() bool {
		return r.ruled("GPU-0") == "gpu.example.com/gpu-node/gpu-0 NoSchedule" && r.noted("default", "gpu-node", "AcceleratorsUnhealthy") &&
			r.shows(`accel_remediator_pool_devices_out{pool=""} 1`)
	})
	if !r.clean("gpu-node") {
		t.Error("the node is out, too")
	}
	r.fire(time.Now().Add(time.Hour), "plugin-node")
	await(t, "a device that no driver publishes is out with its node", r.remediator, func() bool { return r.out("plugin-node") })

	r.publish("gpu-node", map[string]string{"gpu-0": "GPU-3", "gpu-1": "GPU-0"})
	await(t, "the rule follows the device", r.remediator, func() bool { return r.ruled("GPU-0") == "gpu.example.com/gpu-node/gpu-1 NoSchedule" })
	r.publish("gpu-node", map[string]string{"gpu-1": "GPU-3"})
	await(t, "the rule does not taint another device", r.remediator, func() bool { return r.ruled("GPU-0") == "gpu.example.com/gpu-node/gpu-1 None" })
	r.publish("gpu-node", map[string]string{"gpu-0": "GPU-0", "gpu-3": "GPU-3"})
	await(t, "the device is back", r.remediator, func() bool { return r.ruled("GPU-0") == "gpu.example.com/gpu-node/gpu-0 NoSchedule" })

	r.do(http.MethodDelete, slicesPath+"/gpu-node", nil) // a slice keeps its pool
	r.publishIn("gpu-node", "renamed", map[string]string{"gpu-0": "GPU-0", "gpu-3": "GPU-3"})
	await(t, "the rule follows the device into another pool", r.remediator, func() bool { return r.ruled("GPU-0") == "gpu.example.com/renamed/gpu-0 NoSchedule" })

	r.proof.Store(nil)
	r.fire(time.Now().Add(-time.Second), "gpu-node", "plugin-node")
	await(t, "both wait for the exporter", r.remediator, func() bool {
		return r.shows(`accel_remediator_withheld_nodes{pool="",reason="exporter"} 2`)
	})
	page := proofPage
	r.proof.Store(&page)
	await(t, "both return", r.remediator, func() bool {
		return r.ruled("GPU-0") == "gpu.example.com/renamed/gpu-0 None" && r.clean("plugin-node") && r.noted("default", "gpu-node", "AcceleratorsRecovered")
	})
	r.do(http.MethodDelete, "/api/v1/nodes/gpu-node", nil)
	await(t, "the rule goes with its node", nil, func() bool { return len(r.list(taintRules)) == 0 })
}

// NoExecute is set if Kubernetes counts no more pods than the alert names, and refused
// with a reason else. The controller evicts the pod then.
func TestRemedyDeviceEvicts(t *testing.T) {
	t.Parallel()
	r := newRemedy(t, "gpu-node")
	r.manage()
	r.takeDevices("NoExecute")
	r.publish("gpu-node", map[string]string{"gpu-0": "GPU-0", "gpu-3": "GPU-3"})
	r.claim("known", "gpu-node", "gpu-0")
	r.claim("monitor", "gpu-node", "gpu-3")
	r.began = time.Now()
	r.fireAs(time.Now().Add(time.Hour), object{"alertname": "Lost", "node": "gpu-node", "device": "GPU-0", "namespace": "training", "pod": "known"},
		object{"alertname": "Lost", "node": "gpu-node", "device": "GPU-3"})
	r.act("--act", "--interval=1s")
	await(t, "one device evicts its pod, the other does not", r.remediator, func() bool {
		return r.ruled("GPU-0") == "gpu.example.com/gpu-node/gpu-0 NoExecute" && r.ruled("GPU-3") == "gpu.example.com/gpu-node/gpu-3 NoSchedule" &&
			r.gone("training", "known") && r.shows(`accel_remediator_withheld_nodes{pool="",reason="eviction"} 1`)
	})
	plan, err := r.get("http://" + remediatorAddress + "/debug/plan")
	if err != nil || !strings.Contains(plan, "NoExecute would evict 1 pods, and the alerts name 0") || r.gone("training", "monitor") {
		t.Errorf("%v: %s", err, plan)
	}
}

// The remediator is killed before all and after each change. In the end the device has
// one rule, each Event is there once, and nothing is left that counts as out.
func TestRemedyDeviceKilledAtEveryStep(t *testing.T) {
	t.Parallel()
	r := newRemedy(t, "gpu-node")
	r.manage()
	r.takeDevices("NoExecute")
	r.publish("gpu-node", map[string]string{"gpu-0": "GPU-0"})
	k := &killer{proxy: newProxy(r, proxyPort, "proxied"), seen: map[string]bool{}}
	k.set(k.meet)
	k.start()
	r.fire(time.Now().Add(time.Hour), "gpu-node")
	if steps := k.step("the device is out", func() bool {
		return r.ruled("GPU-0") == "gpu.example.com/gpu-node/gpu-0 NoExecute" && r.noted("default", "gpu-node", "AcceleratorsUnhealthy")
	}); steps != 3 {
		t.Errorf("killed after %d changes; there are 3", steps)
	}
	r.fire(time.Now().Add(-time.Second), "gpu-node")
	if steps := k.step("the device is in again", func() bool {
		return r.ruled("GPU-0") == "gpu.example.com/gpu-node/gpu-0 None" && r.noted("default", "gpu-node", "AcceleratorsRecovered")
	}); steps != 2 {
		t.Errorf("killed after %d changes; there are 2", steps)
	}
	for _, reason := range []string{"AcceleratorsUnhealthy", "AcceleratorsRecovered"} {
		if n := r.notes("default", "gpu-node", reason); n != 1 {
			t.Errorf("%d Events of reason %s", n, reason)
		}
	}
	history := text(r.list(taintRules)[0].(object), "metadata", "annotations", "accel.health/history")
	if strings.Count(history, ",") > 0 || !r.clean("gpu-node") {
		t.Errorf("history %s", history)
	}
}

// A device that is out is not allocated, also not as an extended resource. It returns after
// a test on it, which the scheduler allocates in spite of the taint. A test that fails keeps it out until a person requests another. The remediator is killed
// at each change.
func TestRemedyDeviceTest(t *testing.T) {
	t.Parallel()
	r := newRemedy(t, "gpu-node")
	r.manage()
	r.pod("training", "other", "gpu-node") // makes the namespace
	r.run("scheduler.log", program(t, *schedulerBinary, "kube-scheduler-v*"), "--kubeconfig="+r.path("admin"), "--leader-elect=false", "--secure-port=0")
	r.takeDevices("NoSchedule")
	policy := strings.Replace(r.read("policy.yml"), "health: failed\n", "health: failed\n    test: burn\n", 1) + "hooks: {burn: {job: " + r.path("job.yml") + ", class: gpu}}\n"
	must(t, os.WriteFile(r.path("policy.yml"), []byte(policy), 0o600))
	must(t, os.WriteFile(r.path("job.yml"), []byte(resetJob), 0o600))
	r.do(http.MethodPost, "/apis/resource.k8s.io/v1/deviceclasses", object{"metadata": object{"name": "gpu"}, "spec": object{"extendedResourceName": "example.com/gpu"}})
	r.do(http.MethodPost, "/api/v1/namespaces/"+remediatorUser+"/serviceaccounts", object{"metadata": object{"name": "default"}})
	r.do(http.MethodPatch, "/api/v1/namespaces/"+remediatorUser, object{"metadata": object{"labels": object{"pod-security.kubernetes.io/enforce": nil}}})
	r.do(http.MethodPatch, "/api/v1/nodes/gpu-node/status", object{"status": object{
		"capacity": object{"pods": "10", "cpu": "4", "memory": "8Gi"}, "allocatable": object{"pods": "10", "cpu": "4", "memory": "8Gi"},
		"conditions": []any{object{"type": "Ready", "status": "True"}},
	}})
	r.publish("gpu-node", map[string]string{"gpu-0": "GPU-0", "gpu-3": "GPU-3"})
	r.fire(time.Now().Add(time.Hour), "gpu-node")
	k := &killer{proxy: newProxy(r, proxyPort, "proxied"), seen: map[string]bool{}}
	k.set(k.meet)
	k.start()
	k.step("the device is out", func() bool { return r.ruled("GPU-0") == "gpu.example.com/gpu-node/gpu-0 NoSchedule" })
	for _, name := range []string{"one", "two"} {
		r.do(http.MethodPost, "/api/v1/namespaces/training/pods", object{"metadata": object{"name": name}, "spec": object{
			"tolerations": []any{object{"operator": "Exists"}},
			"containers":  []any{object{"name": "main", "image": "scratch.local/main:1", "resources": object{"limits": object{"example.com/gpu": "1"}}}},
		}})
	}
	await(t, "one pod has the other device, and the second pod none", nil, func() bool {
		pods, claims := fmt.Sprint(r.list("/api/v1/namespaces/training/pods")), fmt.Sprint(r.list("/apis/resource.k8s.io/v1/namespaces/training/resourceclaims"))
		return strings.Contains(pods, "reason:Unschedulable") && strings.Contains(claims, "device:gpu-3") && !strings.Contains(claims, "device:gpu-0")
	})
	r.fire(time.Now().Add(-time.Second), "gpu-node")

	namespace := "/api/v1/namespaces/" + remediatorUser
	claims := "/apis/resource.k8s.io/v1/namespaces/" + remediatorUser + "/resourceclaims"
	// tests ends the latest test in a phase, once it has a node and a device.
	tests := func(n int, phase string) {
		t.Helper()
		var running object
		k.step("a test has the device", func() bool {
			pods, list := r.list(namespace+"/pods"), r.list(claims)
			for _, p := range pods {
				if text(p.(object), "status", "phase") == "Pending" && text(p.(object), "spec", "nodeName") == "gpu-node" {
					running = p.(object)
				}
			}
			return len(list) == n && running != nil
		})
		claim := r.do(http.MethodGet, claims+"/"+text(running, "metadata", "labels", "batch.kubernetes.io/job-name"), nil)
		results := claim["status"].(object)["allocation"].(object)["devices"].(object)["results"].([]any)
		if len(results) != 1 || text(results[0].(object), "device") != "gpu-0" || r.ruled("GPU-0") != "gpu.example.com/gpu-node/gpu-0 NoSchedule" {
			t.Errorf("the test has %v, the rule is %s", results, r.ruled("GPU-0"))
		}
		r.do(http.MethodPatch, namespace+"/pods/"+text(running, "metadata", "name")+"/status", object{"status": object{"phase": phase}})
	}
	tests(1, "Failed")
	k.step("a failed test keeps the device out", func() bool {
		return r.shows(`accel_remediator_node_inspection_required{device="GPU-0",node="gpu-node",pool=""} 1`) && r.noted("default", "gpu-node", "AcceleratorsTestFailed")
	})
	name := text(r.list(taintRules)[0].(object), "metadata", "name")
	r.do(http.MethodPatch, taintRules+"/"+name, object{"metadata": object{"annotations": object{"accel.health/inspect": nil}}})
	tests(2, "Succeeded")
	k.step("the device returns", func() bool { return r.ruled("GPU-0") == "gpu.example.com/gpu-node/gpu-0 None" })
}

// The service account may make, change and delete its own rules, each of one device of
// one node, and no other.
func TestRemedyDeviceBound(t *testing.T) {
	t.Parallel()
	r := newRemedy(t, "gpu-node")
	owner := []any{object{"apiVersion": "v1", "kind": "Node", "name": "gpu-node", "uid": text(r.node("gpu-node"), "metadata", "uid")}}
	rule := func(name string, change func(metadata, selector, taint object)) object {
		metadata := object{"name": name, "labels": object{"app.kubernetes.io/managed-by": "accel-remediator"}, "ownerReferences": owner}
		selector := object{"driver": "gpu.example.com", "pool": "gpu-node", "device": "gpu-0"}
		taint := object{"key": "accel.health", "value": "failed", "effect": "NoSchedule"}
		change(metadata, selector, taint)
		return object{"metadata": metadata, "spec": object{"deviceSelector": selector, "taint": taint}}
	}
	as := func(method, path string, body any) int {
		code, _, err := r.ask(method, taintRules+path, r.token, body)
		must(t, err)
		return code
	}
	foreign := rule("foreign", func(metadata, _, _ object) { delete(metadata, "labels") })
	r.do(http.MethodPost, taintRules, foreign)
	own := rule("own", func(_, _, _ object) {})
	r.do(http.MethodPost, taintRules, own)
	label := object{"metadata": object{"labels": object{"app.kubernetes.io/managed-by": "accel-remediator"}}}
	// A policy is in force some time after it is made.
	await(t, "a foreign rule is not changed", nil, func() bool {
		return as(http.MethodPatch, "/foreign", object{"metadata": object{"annotations": object{"x": "y"}}}) == http.StatusUnprocessableEntity
	})
	if code := as(http.MethodPatch, "/foreign", label); code != http.StatusUnprocessableEntity {
		t.Errorf("takes a foreign rule over: %d", code)
	}
	if code := as(http.MethodDelete, "/foreign", nil); code != http.StatusUnprocessableEntity {
		t.Errorf("deletes a foreign rule: %d", code)
	}
	for what, change := range map[string]func(metadata, selector, taint object){
		"every pool":   func(_, selector, _ object) { delete(selector, "pool") },
		"every device": func(_, selector, _ object) { delete(selector, "device") },
		"every driver": func(_, selector, _ object) { delete(selector, "driver") },
		"another key":  func(_, _, taint object) { taint["key"] = "nvidia.com/gpu" },
		"no label":     func(metadata, _, _ object) { delete(metadata, "labels") },
		"no owner":     func(metadata, _, _ object) { delete(metadata, "ownerReferences") },
	} {
		if code := as(http.MethodPost, "", rule("new", change)); code != http.StatusUnprocessableEntity {
			t.Errorf("%s: %d", what, code)
		}
	}
	if code := as(http.MethodPatch, "/own", object{"spec": object{"deviceSelector": object{"pool": nil}}}); code != http.StatusUnprocessableEntity {
		t.Errorf("widens its own rule: %d", code)
	}
	for _, code := range []int{
		as(http.MethodPatch, "/own", object{"spec": object{"taint": object{"effect": "None"}}}),
		as(http.MethodPost, "", rule("new", func(_, _, _ object) {})), as(http.MethodDelete, "/own", nil),
	} {
		if code >= 300 {
			t.Errorf("its own rule: %d", code)
		}
	}
}
