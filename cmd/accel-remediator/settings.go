package main

import (
	"errors"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/accel-exporter/accel-exporter/cmd/accel-remediator/kube"
	"github.com/accel-exporter/accel-exporter/internal/remediation"
	"github.com/accel-exporter/accel-exporter/internal/strict"
)

// settings are the policy and the manifests of Jobs that it names. They come into
// force together or not at all.
type settings struct {
	policy *strict.File
	jobs   map[string]*strict.File // by their names in the policy
}

func newSettings(file string) *settings {
	return &settings{policy: strict.NewFile(file), jobs: map[string]*strict.File{}}
}

// load reads all files. Its error names every mistake of the policy, or of the
// manifests.
func (s *settings) load() (*remediation.Policy, map[string]*batchv1.Job, error) {
	data, err := s.policy.Read()
	if err != nil {
		return nil, nil, err
	}
	policy, err := remediation.ParsePolicy(s.policy.Path(), data)
	if err != nil {
		return nil, nil, err
	}
	jobs := map[string]*batchv1.Job{}
	files := map[string]*strict.File{}
	var errs []error
	for name, hook := range policy.Hooks {
		if hook.Job == "" || files[hook.Job] != nil {
			continue
		}
		file := strict.NewFile(hook.Job)
		files[hook.Job] = file
		if jobs[hook.Job], err = loadJob(file); err != nil {
			errs = append(errs, fmt.Errorf("%s: hooks.%s.job: %w", s.policy.Path(), name, err))
		}
	}
	s.jobs = files // also those with a mistake, to load them when they change
	return policy, jobs, errors.Join(errs...)
}

func loadJob(file *strict.File) (*batchv1.Job, error) {
	data, err := file.Read()
	if err != nil {
		return nil, err
	}
	return kube.ParseJob(file.Path(), data)
}

// changed reports once that a file differs from the loaded one.
func (s *settings) changed() bool {
	any, _ := s.policy.Changed()
	for _, file := range s.jobs {
		changed, _ := file.Changed()
		any = any || changed
	}
	return any
}
