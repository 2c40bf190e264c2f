package kubelet_test

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// A disruption budget keeps a pod on its node. When the budget allows it, the pod goes. A pod that would come back there is left
// alone.
func TestRemedyEviction(t *testing.T) {
	t.Parallel()
	r := newRemedy(t, "gpu-node")
	for _, name := range []string{"llm-0", "agent"} {
		r.pod("training", name, "gpu-node")
	}
	r.do(http.MethodPatch, "/api/v1/namespaces/training/pods/agent", object{"metadata": object{"ownerReferences": []any{
		object{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "1", "controller": true},
	}}})
	r.do(http.MethodPatch, "/api/v1/namespaces/training/pods/llm-0", object{"metadata": object{"labels": object{"app": "llm"}}})
	r.do(http.MethodPatch, "/api/v1/namespaces/training/pods/llm-0/status", object{"status": object{
		"phase": "Running", "conditions": []any{object{"type": "Ready", "status": "True"}},
	}})
	const budgets = "/apis/policy/v1/namespaces/training/poddisruptionbudgets"
	budget := r.do(http.MethodPost, budgets, object{
		"metadata": object{"name": "llm"}, "spec": object{"minAvailable": 1, "selector": object{"matchLabels": object{"app": "llm"}}},
	})
	allow := func(n int) {
		r.do(http.MethodPatch, budgets+"/llm/status", object{"status": object{
			"disruptionsAllowed": n, "currentHealthy": 1, "desiredHealthy": 1 - n, "expectedPods": 1,
			"observedGeneration": budget["metadata"].(object)["generation"],
		}})
	}
	allow(0)
	r.fireAs(
		time.Now().Add(time.Hour), object{"alertname": "Lost", "node": "gpu-node", "namespace": "training", "pod": "llm-0"},
		object{"alertname": "Lost", "node": "gpu-node", "namespace": "training", "pod": "agent"},
	)
	r.act("--act", "--interval=1s")
	await(t, "the budget refuses", r.remediator, func() bool {
		_, times, found := strings.Cut(r.metrics(), "\naccel_remediator_actions_total{action=\"evict\",result=\"refused\"} ")
		return found && !strings.HasPrefix(times, "0\n")
	})
	if !r.out("gpu-node") || r.gone("training", "llm-0") {
		t.Error("the node is not marked, or the pod not kept")
	}
	allow(1)
	await(t, "the pod goes", r.remediator, func() bool { return r.gone("training", "llm-0") })
	r.passes(2)
	if r.gone("training", "agent") {
		t.Error("a pod of a DaemonSet was evicted")
	}
}
