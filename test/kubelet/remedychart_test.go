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
)

// Releases of the chart, each with a remediator in a namespace of its name.
const (
	lookingRelease = "looks"
	actingRelease  = "acts"
	chartAccount   = "accel-remediator"
)

// chartUser is the service account of a release's remediator.
func chartUser(release string) string {
	return "system:serviceaccount:" + release + ":" + chartAccount
}

// chartValues are of a policy that uses everything that takes a right.
const chartValues = `remediator:
  enabled: true
  alertmanagers: ["http://` + alertmanagerAddress + `"]
  interval: 1s
  policy:
    settle: 10s
    alerts: [Lost]
    limits: {share: 1}
    rules:
      - match: {alertname: Lost}
        health: failed
        device: NoSchedule
        taints: [{key: accel.health, value: failed, effect: NoSchedule}]
        cordon: true
        condition: true
        evict: true
        call: reset
    hooks:
      reset: {job: /etc/accel-remediator/reset-job.yaml}
  jobs:
    reset-job.yaml: |
      apiVersion: batch/v1
      kind: Job
      spec:
        template:
          spec:
            restartPolicy: Never
            containers: [{name: reset, image: scratch.local/reset:1}]
`

// A remediator that the chart has installed looks with the rights to look, and
// acts with the rights to act. It uses each of them and asks for no other, by
// the API server's own record. The server takes each object of the chart, and
// the pod at the level restricted.
func TestRemedyChart(t *testing.T) {
	t.Parallel()
	helm := program(t, *helmBinary, "helm-v*")
	r := newRemedy(t, "gpu-node", "other")
	r.pod("training", "llm-0", "gpu-node")
	r.publish("other", map[string]string{"gpu-3": "GPU-3"})
	r.publish("gpu-node", map[string]string{"gpu-9": "GPU-9"}) // and not the device of the alert
	lost := []object{{"alertname": "Lost", "node": "gpu-node", "namespace": "training", "pod": "llm-0"}, {"alertname": "Lost", "node": "other", "device": "GPU-3"}}
	r.fireAs(time.Now().Add(time.Hour), lost...)

	r.install(helm, lookingRelease, "remediator.act=false")
	r.startRelease(lookingRelease)
	await(t, "the dry run reports its plan", r.remediator, func() bool {
		return r.shows(`accel_remediator_planned_nodes{action="take_out"} 2`)
	})
	r.uses(lookingRelease)
	r.end(&r.remediator)
	if !r.clean("gpu-node") || r.noted("default", "gpu-node", "AcceleratorsUnhealthy") {
		t.Error("a dry run has changed something")
	}

	r.install(helm, actingRelease, "remediator.act=true")
	r.startRelease(actingRelease)
	await(t, "the node is marked", r.remediator, func() bool { return r.out("gpu-node") })
	await(t, "the Jobs of the node and the device are made", r.remediator, func() bool {
		return len(r.list("/apis/batch/v1/namespaces/"+actingRelease+"/jobs")) == 2
	})
	namespace := actingRelease + "-exporter"
	r.do(http.MethodPost, "/api/v1/namespaces/"+namespace+"/serviceaccounts", object{"metadata": object{"name": "default"}})
	for _, node := range []string{"gpu-node", "other"} {
		r.exporterPod(namespace, node, object{"app.kubernetes.io/name": "accel-exporter", "app.kubernetes.io/instance": actingRelease})
	}
	await(t, "the device is out", r.remediator, func() bool { return r.ruled("GPU-3") == "gpu.example.com/other/gpu-3 NoSchedule" })
	await(t, "the call is recorded on the rule", r.remediator, func() bool {
		return strings.Contains(text(r.list(taintRules)[0].(object), "metadata", "annotations", "accel.health/record"), `"called":["reset"]`)
	})
	r.fireAs(time.Now().Add(-time.Second), lost...)
	await(t, "the exporter proves that the node and the device may return", r.remediator, func() bool {
		return r.clean("gpu-node") && r.ruled("GPU-3") == "gpu.example.com/other/gpu-3 None"
	})
	name := text(r.list(taintRules)[0].(object), "metadata", "name")
	r.do(http.MethodPatch, taintRules+"/"+name, object{"metadata": object{"annotations": object{"accel.health/history": nil, "accel.health/returned": nil}}})
	await(t, "a rule without history is deleted", r.remediator, func() bool { return len(r.list(taintRules)) == 0 })
	r.uses(actingRelease)
}

// install makes each object of a release, and its namespace, in which only pods
// at the level restricted may run. The exporter's objects are in another.
func (r *remedy) install(helm, release, set string) {
	r.t.Helper()
	must(r.t, os.WriteFile(r.path("values.yaml"), []byte(chartValues), 0o600))
	manifest := render(r.t, helm, release, "--namespace="+release+"-exporter", "--values="+r.path("values.yaml"),
		"--set=networkPolicy.enabled=true,remediator.serviceAccount.name="+chartAccount, "--set=remediator.namespace="+release, "--set="+set)
	r.do(http.MethodPost, "/api/v1/namespaces", object{"metadata": object{"name": release + "-exporter"}})
	r.do(http.MethodPost, "/api/v1/namespaces", object{"metadata": object{
		"name": release, "labels": object{"pod-security.kubernetes.io/enforce": "restricted"},
	}})
	r.create(manifest, "")
}

// startRelease runs the remediator as its Deployment has it, with the token of
// its service account and the files of its ConfigMap.
func (r *remedy) startRelease(release string) {
	r.t.Helper()
	name, at := release+"-accel-exporter-remediator", "/api/v1/namespaces/"+release
	template := r.do(http.MethodGet, "/apis/apps/v1/namespaces/"+release+"/deployments/"+name, nil)["spec"].(object)["template"].(object)
	template["metadata"].(object)["name"] = "try"
	r.do(http.MethodPost, at+"/pods", template) // Pod Security admission looks at it

	dir := r.path(release)
	must(r.t, os.Mkdir(dir, 0o700))
	for file, content := range r.do(http.MethodGet, at+"/configmaps/"+name, nil)["data"].(object) {
		content := strings.ReplaceAll(content.(string), "/etc/accel-remediator", dir)
		must(r.t, os.WriteFile(dir+"/"+file, []byte(content), 0o600))
	}
	r.userConfig(release+".kubeconfig", r.serviceToken(release, chartAccount, nil))
	args := []string{"--kubeconfig=" + r.path(release+".kubeconfig"), "--namespace=" + release, "--pod=" + release}
	container := template["spec"].(object)["containers"].([]any)[0].(object)
	for _, arg := range container["args"].([]any) {
		args = append(args, strings.NewReplacer("/etc/accel-remediator", dir, ":19400/", ":"+r.proofPort+"/").Replace(arg.(string)))
	}
	r.remediator = r.run("remediator.log", abs(r.t, root+"/bin/accel-remediator"), args...)
}

// uses waits until the remediator has used each right that the chart gave it,
// and requested no other.
func (r *remedy) uses(release string) {
	r.t.Helper()
	rbac := "/apis/rbac.authorization.k8s.io/v1/"
	name := release + "-accel-exporter-remediator"
	given := map[string]bool{}
	roles := []string{"clusterroles/" + name, "namespaces/" + release + "/roles/" + name, "namespaces/" + release + "-exporter/roles/" + name + "-exporters"}
	for _, path := range roles {
		for _, v := range r.do(http.MethodGet, rbac+path, nil)["rules"].([]any) {
			rule := v.(object)
			for _, resource := range rule["resources"].([]any) {
				for _, verb := range rule["verbs"].([]any) {
					given[fmt.Sprintf("%s %s", verb, resource)] = true
				}
			}
		}
	}
	want := slices.Sorted(maps.Keys(given))
	var used, denied []string
	await(r.t, fmt.Sprintf("it has used %q", want), r.remediator, func() bool {
		used, denied = r.recorded(release)
		return len(denied) > 0 || len(used) >= len(want)
	})
	if !slices.Equal(used, want) || len(denied) > 0 {
		r.t.Errorf("it used %q, it may %q; it was denied %q", used, want, denied)
	}
}

// recorded returns the requests of a release's remediator that were allowed and
// denied, by the API server's audit log.
func (r *remedy) recorded(release string) (used, denied []string) {
	r.t.Helper()
	by := map[string]map[string]bool{"allow": {}, "forbid": {}}
	for e := range r.audits() {
		if e.User.Username != chartUser(release) {
			continue
		}
		what := e.Verb + " " + e.ObjectRef.Resource
		if e.ObjectRef.Subresource != "" {
			what += "/" + e.ObjectRef.Subresource
		}
		decision := by[e.Annotations["authorization.k8s.io/decision"]]
		if decision == nil {
			r.t.Fatalf("what was decided of %s? %v", what, e.Annotations)
		}
		decision[what] = true
	}
	return slices.Sorted(maps.Keys(by["allow"])), slices.Sorted(maps.Keys(by["forbid"]))
}
