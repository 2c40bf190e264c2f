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

// A policy and the Jobs that it names come into force together, also where only
// the Job's file has changed.
func TestSettings(t *testing.T) {
	dir := t.TempDir()
	policy, job := filepath.Join(dir, "policy.yml"), filepath.Join(dir, "job.yml")
	write := func(name, content string) {
		t.Helper()
		// Renamed into place, as Kubernetes does with what is mounted.
		if err := os.WriteFile(name+".new", []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(name+".new", name); err != nil {
			t.Fatal(err)
		}
	}
	write(policy, "hooks: {reset: {job: "+job+"}}\n")
	s := newSettings(policy)
	if _, _, err := s.load(); err == nil || !strings.HasPrefix(err.Error(), policy+": hooks.reset.job: ") {
		t.Errorf("without the Job's file: %v", err)
	}
	changes := func() bool { s.changed(); return s.changed() } // a file must be found twice as it is
	write(job, strings.Replace(goodJob, "image", "imagee", 1))
	if !changes() {
		t.Error("a file that is there now is no change")
	}
	if _, _, err := s.load(); err == nil || !strings.Contains(err.Error(), job+":7: spec.template.spec.containers[0].imagee: found a key") {
		t.Errorf("a mistake in the Job: %v", err)
	}
	write(job, goodJob)
	if !changes() {
		t.Error("a file that was mended is no change")
	}
	p, jobs, err := s.load()
	if err != nil || jobs[p.Hooks["reset"].Job] == nil {
		t.Errorf("%v, %v", jobs, err)
	}
	if changes() {
		t.Error("a change where nothing has changed")
	}
}
