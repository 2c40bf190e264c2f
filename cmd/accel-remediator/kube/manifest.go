package kube

import (
	"errors"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/accel-exporter/accel-exporter/internal/config/strict"
)

// ParseJob reads the manifest of a Job. Its error names each mistake by file and field.
// The API server may still refuse a manifest without a mistake.
func ParseJob(name string, data []byte) (*batchv1.Job, error) {
	if len(data) > strict.MaxSize {
		return nil, fmt.Errorf("%s: found more than %d bytes; accepted is a file of at most that size", name, strict.MaxSize)
	}
	document, err := yaml.YAMLToJSONStrict(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	job := new(batchv1.Job)
	errs, err := json.UnmarshalStrict(document, job)
	if err := errors.Join(append(errs, err)...); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	mistake := func(wrong bool, field, text string, args ...any) {
		if wrong {
			errs = append(errs, fmt.Errorf("%s: %s: %s", name, field, fmt.Sprintf(text, args...)))
		}
	}
	pod := &job.Spec.Template.Spec
	const at = "spec.template.spec"
	mistake(job.APIVersion != "batch/v1" || job.Kind != "Job", "kind", "found %q of %q; accepted is Job of batch/v1", job.Kind, job.APIVersion)
	mistake(pod.RestartPolicy != corev1.RestartPolicyNever && pod.RestartPolicy != corev1.RestartPolicyOnFailure, at+".restartPolicy", "found %q; accepted: Never, OnFailure", pod.RestartPolicy)
	mistake(pod.NodeName != "", at+".nodeName", "found a node; accepted is none: it is set for each call")
	mistake(len(pod.Containers) == 0, at+".containers", "found none; accepted is one or more")
	for kind, list := range map[string][]corev1.Container{"initContainers": pod.InitContainers, "containers": pod.Containers} {
		for i, c := range list {
			mistake(c.Name == "" || c.Image == "", fmt.Sprintf("%s.%s[%d]", at, kind, i), "found no name or no image; accepted is a container with both")
		}
	}
	return job, errors.Join(errs...)
}
