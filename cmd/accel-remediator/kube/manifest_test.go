package kube

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/accel-exporter/accel-exporter/internal/remediation"
)

const manifestText = `apiVersion: batch/v1
kind: Job
metadata: {name: any, labels: {app: reset}}
spec:
  backoffLimit: 2
  template:
    spec:
      restartPolicy: Never
      initContainers:
        - {name: first, image: wait}
      containers:
        - name: main
          image: reset
          env: [{name: MODE, value: all}]
`

// Each mistake is reported by file and field, and the example has no mistake.
func TestManifestMistakes(t *testing.T) {
	for _, c := range []struct{ was, is, want string }{
		{"image: reset", "imagee: reset", `job.yml: unknown field "spec.template.spec.containers[0].imagee"`},
		{"image: reset", "", "job.yml: spec.template.spec.containers[0]: found no name or no image"},
		{"backoffLimit: 2", "backoffLimit: two", "spec.backoffLimit of type int32"},
		{"kind: Job", "kind: Pod", `job.yml: kind: found "Pod" of "batch/v1"; accepted is Job of batch/v1`},
		{"restartPolicy: Never", "restartPolicy: Always", `job.yml: spec.template.spec.restartPolicy: found "Always"; accepted: Never, OnFailure`},
		{"restartPolicy: Never", "nodeName: n1\n      restartPolicy: Never", "job.yml: spec.template.spec.nodeName: found a node"},
		{"backoffLimit: 2", "backoffLimit: 2\n  backoffLimit: 3", "job.yml: "},
		{"spec:", "spec: [", "job.yml: "},
	} {
		text := strings.Replace(manifestText, c.was, c.is, 1)
		_, err := ParseJob("job.yml", []byte(text))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q for %q: %v, want %s", c.is, c.was, err, c.want)
		}
	}
	example, err := os.ReadFile("../../../deploy/remediator/burn-nvidia.yaml")
	if err == nil {
		_, err = ParseJob("burn-nvidia.yaml", example)
	}
	if err != nil {
		t.Error(err)
	}
	if _, err := ParseJob("job.yml", nil); err == nil {
		t.Error("an empty file is accepted")
	}
}

// A Job has a unique name for each call, runs on the node despite its taints, has
// the call in the environment of every container, and is removed after its end.
func TestJob(t *testing.T) {
	manifest, err := ParseJob("job.yml", []byte(manifestText))
	if err != nil {
		t.Fatal(err)
	}
	call := &remediation.Call{Key: "n1-1-reset", Hook: "reset", Node: "n1", Since: time.Unix(1, 0), Alerts: []string{"Lost", "Failed"}, Devices: []string{"GPU-0"}}
	a, again := jobFor(manifest, "ours", call), jobFor(manifest, "ours", call)
	other := *call
	other.Key = "n1-2-reset"
	if b := jobFor(manifest, "ours", &other); a.Name != again.Name || a.Name == b.Name || a.Namespace != "ours" || len(a.Name) > 63 {
		t.Errorf("names %q, %q, %q", a.Name, again.Name, b.Name)
	}
	pod := a.Spec.Template.Spec
	if pod.NodeName != "n1" || len(pod.Tolerations) != 1 || pod.Tolerations[0].Operator != "Exists" || *a.Spec.TTLSecondsAfterFinished != keepJob {
		t.Errorf("%+v", a.Spec)
	}
	for _, c := range append(pod.InitContainers, pod.Containers...) {
		env := map[string]string{}
		for _, e := range c.Env {
			env[e.Name] = e.Value
		}
		if env["ACCEL_NODE"] != "n1" || env["ACCEL_ALERTS"] != "Lost,Failed" || env["ACCEL_DEVICES"] != "GPU-0" || env["ACCEL_KEY"] != call.Key {
			t.Errorf("container %s: %v", c.Name, env)
		}
	}
	if len(manifest.Spec.Template.Spec.Containers[0].Env) != 1 {
		t.Error("the manifest was changed")
	}
}

func FuzzManifest(f *testing.F) {
	f.Add([]byte(manifestText))
	f.Add([]byte("a: &a [*a]"))
	f.Add([]byte("{kind: Job, apiVersion: batch/v1, spec: {template: {spec: {containers: [{}], restartPolicy: Never}}}}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		job, err := ParseJob("job.yml", data)
		if err != nil {
			return
		}
		call := &remediation.Call{Key: "k", Hook: "h", Node: "n"}
		made := jobFor(job, "ours", call)
		if _, err := json.Marshal(made); err != nil || made.Spec.Template.Spec.NodeName != "n" {
			t.Errorf("%v, %+v", err, made)
		}
	})
}
