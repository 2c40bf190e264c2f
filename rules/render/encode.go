package render

import (
	"bytes"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

type manifest struct {
	APIVersion string   `yaml:"apiVersion"`
	Kind       string   `yaml:"kind"`
	Metadata   metadata `yaml:"metadata"`
	Spec       File     `yaml:"spec"`
}

type metadata struct {
	Name   string            `yaml:"name"`
	Labels map[string]string `yaml:"labels"`
}

// Encode returns what stands in a YAML file below a comment.
func Encode(comment string, content any) ([]byte, error) {
	var b bytes.Buffer
	b.WriteString("# " + comment + "\n")
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(content); err != nil {
		return nil, err
	}
	return b.Bytes(), enc.Close()
}

// Manifest returns a rule file as a PrometheusRule with further labels, to be
// encoded.
func Manifest(name string, rules File, labels map[string]string) any {
	all := map[string]string{"app.kubernetes.io/name": "accel-exporter"}
	maps.Copy(all, labels)
	return manifest{
		APIVersion: "monitoring.coreos.com/v1",
		Kind:       "PrometheusRule",
		Metadata:   metadata{Name: "accel-exporter-" + strings.TrimSuffix(name, ".yaml"), Labels: all},
		Spec:       rules,
	}
}

// Kustomization returns the kustomization of a directory of manifests, to be
// encoded.
func Kustomization(files map[string]File) any {
	return map[string]any{
		"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization",
		"resources": slices.Sorted(maps.Keys(files)),
	}
}
