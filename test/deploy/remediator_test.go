package deploy

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// remediatorOn are the values that turn the remediator on.
const remediatorOn = "remediator.enabled=true,remediator.alertmanagers={http://alertmanager:9093}"

// someRule is a policy of one rule.
const someRule = ",remediator.policy.rules[0].match.severity=critical,remediator.policy.rules[0].health=failed"

// remediatorCases are the cases of ci with the remediator.
func remediatorCases(t *testing.T) []string {
	t.Helper()
	with := slices.DeleteFunc(cases(t), func(name string) bool { return !strings.HasPrefix(name, "remediator") })
	if len(with) < 3 {
		t.Fatalf("only %q", with)
	}
	return with
}

func remediatorSpec(t *testing.T, all []object) *corev1.PodSpec {
	t.Helper()
	return podSpecOf(t, one(t, all, "Deployment"))
}

// TestRemediatorIsOff: nothing of it is there unless it is asked for.
func TestRemediatorIsOff(t *testing.T) {
	for _, name := range cases(t) {
		if !strings.HasPrefix(name, "remediator") && bytes.Contains(bytes.Join(yamls(t, objects(t, name)), nil), []byte("accel-remediator")) {
			t.Errorf("%s has something of it", name)
		}
	}
}

func yamls(t *testing.T, all []object) [][]byte {
	t.Helper()
	var texts [][]byte
	for _, o := range all {
		// Rules and dashboards may refer to it.
		if o.kind() != "PrometheusRule" && !strings.Contains(o.name(), "-dashboard-") {
			texts = append(texts, o.yaml(t))
		}
	}
	return texts
}

// rights are the rules of the remediator's roles, as lines
// "resource name: verb".
func rights(t *testing.T, all []object) []string {
	t.Helper()
	var lines []string
	for _, o := range all {
		if o.kind() != "ClusterRole" && o.kind() != "Role" || !strings.Contains(o.name(), "remediator") {
			continue
		}
		rules, _ := o["rules"].([]any)
		for _, r := range rules {
			rule := object(r.(map[string]any))
			for _, verb := range texts(rule["verbs"]) {
				what := append(texts(rule["apiGroups"]), texts(rule["resources"])...)
				lines = append(lines, o.kind()+" "+strings.Join(append(what, texts(rule["resourceNames"])...), " ")+": "+verb)
			}
		}
	}
	slices.Sort(lines)
	return lines
}

func texts(list any) []string {
	var all []string
	items, _ := list.([]any)
	for _, v := range items {
		all = append(all, v.(string))
	}
	return all
}

// What it takes to look, to act, and what of the policy takes more.
var (
	toLook = []string{
		"Role  pods: list", // of the exporter
		"ClusterRole  nodes: list", "ClusterRole  nodes: watch",
		"Role coordination.k8s.io leases: create",
		"Role coordination.k8s.io leases accel-remediator: get", "Role coordination.k8s.io leases accel-remediator: update",
	}
	toAct = append([]string{
		"ClusterRole  nodes: patch", "ClusterRole  nodes/status: patch", "ClusterRole  events: create", "ClusterRole  pods: get",
	}, toLook...)
	toEvict = "ClusterRole  pods/eviction: create"
	toMake  = "Role batch jobs: create"
	toFind  = []string{
		"ClusterRole resource.k8s.io resourceslices: list", "ClusterRole resource.k8s.io resourceslices: watch",
		"ClusterRole resource.k8s.io devicetaintrules: list", "ClusterRole resource.k8s.io devicetaintrules: watch",
	}
	toTest  = []string{toMake, "Role batch jobs: get", "Role resource.k8s.io resourceclaims: create"}
	toTaint = append([]string{
		"ClusterRole resource.k8s.io devicetaintrules: create", "ClusterRole resource.k8s.io devicetaintrules: patch",
		"ClusterRole resource.k8s.io devicetaintrules: delete",
	}, toFind...)
)

// TestRemediatorRights: it has the rights that the values ask for and no other;
// in a dry run none to change anything but its lease, for any policy.
func TestRemediatorRights(t *testing.T) {
	act := ",remediator.act=true"
	device := someRule + ",remediator.policy.rules[0].device=NoSchedule"
	evict, job := someRule+",remediator.policy.rules[0].evict=true", ",remediator.policy.hooks.reset.job=/etc/accel-remediator/r.yaml,remediator.jobs.r\\.yaml=x"
	for _, c := range []struct {
		name, flags string
		want        []string
	}{
		{"a dry run", "", toLook},
		{"a dry run of a policy that evicts and makes Jobs", evict + job, toLook},
		{"a dry run of a policy for devices", device, slices.Concat(toFind, toLook)},
		{"one for devices", act + device, slices.Concat(toTaint, toAct)},
		{"the policy to begin with", act, toAct},
		{"one that evicts", act + evict, append([]string{toEvict}, toAct...)},
		{"one that does not", act + someRule + ",remediator.policy.rules[0].evict=false", toAct},
		{"one that makes Jobs", act + someRule + job, append([]string{toMake}, toAct...)},
		{"tests of single devices", act + device + job + ",remediator.policy.rules[0].test=reset", slices.Concat(toTest, toTaint, toAct)},
		{"one with a hook that has a URL", act + someRule + ",remediator.policy.hooks.t.url=https://tickets.example", toAct},
		{"rights that are given elsewhere", act + ",rbac.create=false", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			same(t, c.want, objects(t, "", "--set="+remediatorOn+c.flags))
		})
	}
	t.Run("components", func(t *testing.T) {
		same(t, toLook, build(t, "deploy/kustomize/overlays/remediator"))
		same(t, toAct, build(t, "deploy/kustomize/overlays/remediator-act"))
		same(t, slices.Concat([]string{toEvict}, toTest, toTaint, toAct), build(t, "test/deploy/testdata/remediator"))
	})
}

func same(t *testing.T, want []string, all []object) {
	t.Helper()
	want = slices.Sorted(slices.Values(want))
	if diff := gocmp.Diff(want, rights(t, all)); diff != "" {
		t.Errorf("rights differ (-want +got):\n%s", diff)
	}
}

// TestRemediatorManifest: what is applied without chart and kustomize, and is
// tried on an API server, is all that chart and kustomizations can give, object
// by object.
func TestRemediatorManifest(t *testing.T) {
	manifest := comparable(documents(t, read(t, "deploy/remediator/remediator.yaml")))
	delete(manifest, kustomizeOnly+"/accel-remediator")
	if len(manifest) != 11 {
		t.Errorf("%d objects", len(manifest))
	}
	for name, all := range map[string][]object{"chart": objects(t, "remediator-everything"), "components": build(t, "test/deploy/testdata/remediator")} {
		got := comparable(all)
		for id, want := range manifest {
			if diff := gocmp.Diff(want, got[id]); diff != "" {
				t.Errorf("%s and manifest differ in %s (-manifest +%s):\n%s", name, id, name, diff)
			}
		}
	}
}

// TestOwnPolicy: a kustomization replaces the default policy and Alertmanagers
// with its own.
func TestOwnPolicy(t *testing.T) {
	all := build(t, "test/deploy/testdata/remediator")
	if policy := one(t, all, "ConfigMap").sub("data").text("policy.yml"); policy != string(read(t, "test/deploy/testdata/remediator/policy.yml")) {
		t.Errorf("the policy is\n%s", policy)
	}
	args := slices.DeleteFunc(remediatorSpec(t, all).Containers[0].Args, func(a string) bool { return !strings.HasPrefix(a, "--alertmanager.url=") })
	if !slices.Equal(args, []string{"--alertmanager.url=http://alertmanager.example:9093"}) {
		t.Errorf("Alertmanagers are %q", args)
	}
}

// TestRemediatorMonitor: its targets are one job, and carry labels for the
// pool and node a series is; its alerts are there when it is.
func TestRemediatorMonitor(t *testing.T) {
	for name, kind := range map[string]string{"remediator-act": "PodMonitor", "remediator-everything": "ServiceMonitor"} {
		for _, o := range objects(t, name) {
			if o.kind() != kind || o.name() != "accel-remediator" {
				continue
			}
			got := target(t, o, map[string]string{"job": "x", "pod": "accel-remediator-1", "instance": "10.0.0.1:19401"})
			if got["job"] != "accel-remediator" || got["instance"] != "10.0.0.1:19401" {
				t.Errorf("%s: labels are %v", name, got)
			}
		}
	}
	for name, want := range map[string]bool{"prometheus-operator": false, "remediator-everything": true} {
		if has := slices.ContainsFunc(objects(t, name), func(o object) bool { return o.id() == "PrometheusRule/accel-exporter-remediator" }); has != want {
			t.Errorf("%s: its alerts are there: %t", name, has)
		}
	}
}

// TestSelectors: nothing that selects the exporter's pods selects the
// remediator's, and the reverse.
func TestSelectors(t *testing.T) {
	all := objects(t, "remediator-everything")
	labels := map[string]object{}
	for _, kind := range []string{"DaemonSet", "Deployment"} {
		labels[kind] = one(t, all, kind).sub("spec").sub("template").sub("metadata").sub("labels")
	}
	found := 0
	for _, o := range all {
		of := map[bool]string{true: "Deployment", false: "DaemonSet"}[strings.HasSuffix(o.name(), "remediator")]
		spec := o.sub("spec")
		for _, selector := range []object{spec.sub("selector"), spec.sub("selector").sub("matchLabels"), spec.sub("podSelector").sub("matchLabels")} {
			if selector.text("app.kubernetes.io/name") == "" {
				continue
			}
			found++
			for kind, has := range labels {
				if selects(selector, has) != (kind == of) {
					t.Errorf("%s selects pods of the %s: %t", o.id(), kind, kind != of)
				}
			}
		}
	}
	// Workloads, Services, monitors and network policies.
	if found != 8 {
		t.Errorf("%d selectors", found)
	}
}

func selects(selector, labels object) bool {
	for key, v := range selector {
		if labels[key] != v {
			return false
		}
	}
	return true
}

// TestPolicyCheck: the remediator takes the policy, and the Jobs that it names,
// as they come into its container, and refuses one with a mistake.
func TestPolicyCheck(t *testing.T) {
	checked := func(all []object) (string, error) {
		args := append(layOut(t, remediatorSpec(t, all), all), "--policy.check")
		out, err := exec.Command(program(t, "accel-remediator"), args...).CombinedOutput()
		return string(out), err
	}
	for _, name := range remediatorCases(t) {
		if out, err := checked(objects(t, name)); err != nil {
			t.Errorf("%s: %v: %s", name, err, out)
		}
	}
	for flags, want := range map[string]string{
		someRule + ",remediator.policy.settled=5m": "settled: unknown key",
		someRule + ",remediator.policy.hooks.reset.job=/etc/accel-remediator/r.yaml,remediator.jobs.r\\.yaml=kind: Jop": "r.yaml",
	} {
		if output, err := checked(objects(t, "", "--set="+remediatorOn+flags)); err == nil || !strings.Contains(output, want) {
			t.Errorf("%s: %v: %s", flags, err, output)
		}
	}
}

// TestRemediatorRuns: it starts as the user of the manifest, with nothing that
// it may write to. Nothing of a cluster is there.
func TestRemediatorRuns(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can become another user")
	}
	const nowhere = `{"apiVersion": "v1", "kind": "Config", "current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
		"clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}], "users": [{"name": "u", "user": {"token": "x"}}]}`
	for _, name := range remediatorCases(t) {
		t.Run(name, func(t *testing.T) {
			all := objects(t, name)
			spec := remediatorSpec(t, all)
			config := filepath.Join(t.TempDir(), "kubeconfig")
			write(t, config, []byte(nowhere))
			serves(t, "accel-remediator", *spec.SecurityContext.RunAsUser, append(layOut(t, spec, all), "--kubeconfig="+config))
		})
	}
}
