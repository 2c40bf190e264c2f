package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const goodJob = `apiVersion: batch/v1
kind: Job
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: reset}]
`

// A policy and the Jobs that it names come into force together, even if only the
// file of a Job has changed.
func TestSettings(t *testing.T) {
	dir := t.TempDir()
	policy, job := filepath.Join(dir, "policy.yml"), filepath.Join(dir, "job.yml")
	write := func(name, content string) {
		t.Helper()
		// Kubernetes renames mounted files into place, too.
		if err := os.WriteFile(name+".new", []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(name+".new", name); err != nil {
			t.Fatal(err)
		}
	}
	write(policy, "alerts: [Lost]\nrules: [{match: {alertname: Lost}, health: failed}]\nhooks: {reset: {job: "+job+"}}\n")
	s := newSettings(policy)
	if _, _, err := s.load(); err == nil || !strings.HasPrefix(err.Error(), policy+": hooks.reset.job: ") {
		t.Errorf("without the Job's file: %v", err)
	}
	changes := func() bool { s.changed(); return s.changed() } // a change counts when it is found twice
	write(job, strings.Replace(goodJob, "image", "imagee", 1))
	if !changes() {
		t.Error("a new file is no change")
	}
	if _, _, err := s.load(); err == nil || !strings.Contains(err.Error(), `unknown field "spec.template.spec.containers[0].imagee"`) {
		t.Errorf("a mistake in the Job: %v", err)
	}
	write(job, goodJob)
	if !changes() {
		t.Error("a corrected file is no change")
	}
	p, jobs, err := s.load()
	if err != nil || jobs[p.Hooks["reset"].Job] == nil {
		t.Errorf("%v, %v", jobs, err)
	}
	if changes() {
		t.Error("a change without one")
	}
}
