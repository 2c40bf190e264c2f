package kubelet_test

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

// The service account may change its own marks on a node and nothing else, whatever its
// rights by RBAC are. The API server accepts the example of a test.
func TestRemedyBound(t *testing.T) {
	t.Parallel()
	r := newRemedy(t, "gpu-node")
	r.do(http.MethodPatch, "/api/v1/nodes/gpu-node", object{
		"metadata": object{"labels": object{"zone": "a"}, "annotations": object{"other": "x"}},
		"spec":     object{"taints": []any{object{"key": "maintenance", "effect": "NoSchedule"}}},
	})
	annotations := func(key string, value any) object {
		return object{"metadata": object{"annotations": object{key: value}}}
	}
	labels := func(key string, value any) object { return object{"metadata": object{"labels": object{key: value}}} }
	taints := func(keys ...string) object {
		list := []any{}
		for _, key := range keys {
			list = append(list, object{"key": key, "effect": "NoSchedule"})
		}
		return object{"spec": object{"taints": list}}
	}
	patch := func(path string, body object) int {
		code, _, err := r.ask(http.MethodPatch, "/api/v1/nodes/gpu-node"+path, r.token, body)
		must(t, err)
		return code
	}
	example, err := os.ReadFile(root + "/deploy/remediator/burn-nvidia.yaml")
	must(t, err)
	r.create(strings.Replace(string(example), "kind: Job\n", "kind: Job\nmetadata:\n  namespace: accel-remediator\n  name: burn\n", 1), "&dryRun=All")
	// A policy is in force some time after it is made.
	await(t, "a foreign label is refused", nil, func() bool {
		return patch("", labels("zone", fmt.Sprint(time.Now().UnixNano()))) == http.StatusUnprocessableEntity
	})
	conditions := func(kind string) object {
		return object{"status": object{"conditions": []any{object{"type": kind, "status": "False"}}}}
	}
	for what, refused := range map[string]struct {
		path string
		body object
	}{
		"removes a label":        {"", labels("zone", nil)},
		"another annotation":     {"", annotations("other", "y")},
		"the annotation hold":    {"", annotations("accel.health/hold", "yes")},
		"removes a taint":        {"", taints()},
		"adds another taint":     {"", taints("maintenance", "more")},
		"another condition":      {"/status", conditions("Ready")},
		"a label by its status":  {"/status", labels("zone", "b")},
		"the resources it has":   {"/status", object{"status": object{"capacity": object{"nvidia.com/gpu": "64"}}}},
		"the address of a node":  {"/status", object{"status": object{"addresses": []any{object{"type": "InternalIP", "address": "10.0.0.1"}}}}},
		"a device that is there": {"/status", object{"status": object{"allocatable": object{"nvidia.com/gpu": "64"}}}},
	} {
		if code := patch(refused.path, refused.body); code != http.StatusUnprocessableEntity {
			t.Errorf("%s: %d", what, code)
		}
	}
	for what, accepted := range map[string]struct {
		path string
		body object
	}{
		"its label":      {"", labels("accel.health", "failed")},
		"its annotation": {"", annotations("accel.health/record", "{}")},
		"its taint":      {"", taints("maintenance", "accel.health")},
		"a cordon":       {"", object{"spec": object{"unschedulable": true}}},
		"its condition":  {"/status", conditions("AcceleratorsHealthy")},
	} {
		if code := patch(accepted.path, accepted.body); code != http.StatusOK {
			t.Errorf("%s: %d", what, code)
		}
	}
}

// An absent alert is no recovery. A node stays out, with the reason in a metric, while
// its exporter is dead, was restarted without its memory, a source of it or the device
// is not well, one of two Alertmanagers is gone, or the policy is emptied, mistyped or
// matches nothing. It returns once there is a proof, or a person admits it.
func TestRemedyReturnsOnKnowledge(t *testing.T) {
	t.Parallel()
	nodes := []string{"dead", "admitted"}
	r := newRemedy(t, nodes...)
	const second = "127.0.0.1:9094"
	other := r.run("alertmanager2.log", program(t, *alertmanagerBinary, "alertmanager/usr/bin/prometheus-alertmanager"), "--config.file="+r.path("alertmanager.yml"),
		"--storage.path="+r.path("am2"), "--web.listen-address="+second, "--cluster.listen-address=")
	await(t, "the second Alertmanager listens", other, func() bool { _, err := r.get("http://" + second + "/-/ready"); return err == nil })
	policy := remedyRules + "breaker: {share: 1, window: 10m, nodes: 3}\nlimits: {share: 1, per_hour: 100}\n"
	must(t, os.WriteFile(r.path("policy.yml"), []byte(policy), 0o600))
	r.fire(time.Now().Add(time.Hour), nodes...)
	r.act("--act", "--interval=1s", "--alertmanager.url=http://"+second)
	allOut := func() bool { return r.out("dead") && r.out("admitted") }
	await(t, "both nodes are out", r.remediator, allOut)

	holds := func(what, reason, text string) {
		t.Helper()
		await(t, what, r.remediator, func() bool {
			plan, _ := r.get("http://" + remediatorAddress + "/debug/plan")
			return strings.Count(plan, text) >= 2 && r.shows(`accel_remediator_withheld_nodes{pool="",reason="`+reason+`"} 2`)
		})
		if !allOut() {
			t.Fatalf("%s: a node is in", what)
		}
	}
	for what, broken := range map[string]string{
		"the label of the policy is mistyped": strings.Replace(policy, "node_label: node", "node_label: nod", 1),
		"the policy matches nothing":          strings.Replace(policy, "AcceleratorFailed|Lost", "AcceleratorFailed", 1),
	} {
		must(t, os.WriteFile(r.path("policy.yml"), []byte(broken), 0o600))
		holds(what, "policy", "policy")
	}
	must(t, os.WriteFile(r.path("policy.yml"), []byte("rules: []\n"), 0o600))
	await(t, "the empty policy is refused", r.remediator, func() bool {
		return r.shows("accel_remediator_policy_last_reload_successful 0")
	})
	must(t, os.WriteFile(r.path("policy.yml"), []byte(policy), 0o600))
	await(t, "the policy is in force again", r.remediator, func() bool {
		return r.shows("accel_remediator_policy_last_reload_successful 1") && r.shows(`accel_remediator_withheld_nodes{pool="",reason="policy"} 0`)
	})
	if !allOut() || r.times("dead") != 1 {
		t.Fatal("a slip of the policy has let a node in")
	}

	r.end(&r.alertmanager)
	holds("the Alertmanager with the alert is gone", "unknown", "unknown")
	r.alertmanager = r.run("alertmanager.log", program(t, *alertmanagerBinary, "alertmanager/usr/bin/prometheus-alertmanager"), "--config.file="+r.path("alertmanager.yml"),
		"--storage.path="+r.path("am"), "--web.listen-address="+alertmanagerAddress, "--cluster.listen-address=")

	proof := func(page string) { r.proof.Store(&page) }
	r.proof.Store(nil)
	r.fire(time.Now().Add(-time.Second), nodes...)
	holds("the exporters are dead", "exporter", "EOF")
	proof(strings.Replace(proofPage, `seconds{device="GPU-0"} 1`, `seconds{device="GPU-0"} 4e9`, 1))
	holds("the exporters were restarted without their memory", "exporter", "are unknown to the exporter")
	proof(strings.Replace(proofPage, `reason=""} 1`, `reason="timeout"} 0`, 1))
	holds("a source is down", "source", "source nvidia: timeout")
	proof(strings.Replace(proofPage, "healthy", "unknown", 1))
	holds("the device is unknown", "device", "device GPU-0: unknown")
	r.do(http.MethodPatch, "/api/v1/nodes/admitted", object{"metadata": object{"annotations": object{"accel.health/admit": "repaired"}}})
	await(t, "a person lets one in", r.remediator, func() bool { return r.clean("admitted") })
	if !r.out("dead") {
		t.Error("the other is in, too")
	}
	proof(proofPage)
	await(t, "the proof lets the other in", r.remediator, func() bool { return r.clean("dead") })
}
