package kube

import (
	stdjson "encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/accel-exporter/accel-exporter/internal/config/strict"
)

// ParseJob reads the manifest of a Job. Its error names each mistake by file,
// line and field. The API server may still refuse a manifest that has none.
func ParseJob(name string, data []byte) (*batchv1.Job, error) {
	if len(data) > strict.MaxSize {
		return nil, fmt.Errorf("%s:1: found more than %d bytes; accepted is a file of at most that size", name, strict.MaxSize)
	}
	m := &manifest{name: name}
	if err := yamlv3.Unmarshal(data, &m.root); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	document, err := yaml.YAMLToJSONStrict(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	job := new(batchv1.Job)
	mistakes, err := json.UnmarshalStrict(document, job)
	for _, mistake := range append(mistakes, err) {
		m.decoding(mistake)
	}
	if len(m.errs) == 0 {
		m.check(job)
	}
	return job, errors.Join(m.errs...)
}

// manifest collects the mistakes of one file.
type manifest struct {
	name string
	root yamlv3.Node
	errs []error
}

// maxMistakes is how many mistakes of a file are reported.
const maxMistakes = 20

func (m *manifest) mistake(field, text string) {
	if len(m.errs) < maxMistakes {
		m.errs = append(m.errs, fmt.Errorf("%s:%d: %s: %s", m.name, line(&m.root, field), field, text))
	}
}

// decoding adds an error of the decoder, if there is one.
func (m *manifest) decoding(err error) {
	var field json.FieldError
	var kind *stdjson.UnmarshalTypeError
	switch {
	case err == nil:
	case errors.As(err, &field):
		m.mistake(field.FieldPath(), "found a key that a Job of batch/v1 does not have there, or has already")
	case errors.As(err, &kind):
		m.mistake(kind.Field, fmt.Sprintf("found a %s; accepted is a value of type %s", kind.Value, kind.Type))
	default:
		m.errs = append(m.errs, fmt.Errorf("%s: %w", m.name, err))
	}
}

// check finds the most frequent mistakes that the API server would refuse.
func (m *manifest) check(job *batchv1.Job) {
	if job.APIVersion != "batch/v1" || job.Kind != "Job" {
		m.mistake("kind", fmt.Sprintf("found %q of %q; accepted is Job of batch/v1", job.Kind, job.APIVersion))
		return
	}
	pod := &job.Spec.Template.Spec
	const at = "spec.template.spec"
	if pod.RestartPolicy != corev1.RestartPolicyNever && pod.RestartPolicy != corev1.RestartPolicyOnFailure {
		m.mistake(at+".restartPolicy", fmt.Sprintf("found %q; accepted: Never, OnFailure", pod.RestartPolicy))
	}
	if pod.NodeName != "" {
		m.mistake(at+".nodeName", "found a node; accepted is none: it is set for each call")
	}
	if len(pod.Containers) == 0 {
		m.mistake(at+".containers", "found none; accepted is one or more")
	}
	m.containers(at+".initContainers", pod.InitContainers)
	m.containers(at+".containers", pod.Containers)
}

func (m *manifest) containers(at string, list []corev1.Container) {
	for i, c := range list {
		if c.Name == "" || c.Image == "" {
			m.mistake(fmt.Sprintf("%s[%d]", at, i), "found no name or no image; accepted is a container with both")
		}
	}
}

// line returns the line of a field, or of its nearest parent in the file.
func line(n *yamlv3.Node, field string) int {
	if n.Kind == yamlv3.DocumentNode && len(n.Content) > 0 {
		n = n.Content[0]
	}
	at := n.Line
	for _, step := range strings.FieldsFunc(field, func(r rune) bool { return r == '.' || r == '[' || r == ']' }) {
		key, value := below(n, step)
		if value == nil {
			break
		}
		at, n = key.Line, value
	}
	return max(at, 1)
}

// below returns the key and the value of one step, nil if there is none.
func below(n *yamlv3.Node, step string) (key, value *yamlv3.Node) {
	switch n.Kind {
	case yamlv3.SequenceNode:
		if i, err := strconv.Atoi(step); err == nil && i >= 0 && i < len(n.Content) {
			return n.Content[i], n.Content[i]
		}
	case yamlv3.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == step {
				return n.Content[i], n.Content[i+1]
			}
		}
	}
	return nil, nil
}
