package deploy

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// swagger is the API of Kubernetes, as far as a schema needs it.
type swagger struct {
	Definitions map[string]map[string]any `json:"definitions"`
}

const (
	reference = "#/definitions/"
	meta      = "io.k8s.apimachinery.pkg."
)

var schemaDir = sync.OnceValues(func() (string, error) {
	// The module that builds a kubelet requires Kubernetes, with its checksum.
	cmd := exec.Command("go", "mod", "download", "-json", "k8s.io/kubernetes")
	cmd.Dir = filepath.Join(root, "tools/kubernetes")
	out, err := cmd.Output()
	if err != nil {
		return "", err
	}
	var module struct{ Dir string }
	if err := json.Unmarshal(out, &module); err != nil {
		return "", err
	}
	data, err := os.ReadFile(filepath.Join(module.Dir, "api/openapi-spec/swagger.json"))
	if err != nil {
		return "", err
	}
	var api swagger
	if err := json.Unmarshal(data, &api); err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "schemas")
	if err != nil {
		return "", err
	}
	return dir, api.write(dir)
})

func TestMain(m *testing.M) {
	code := m.Run()
	if dir, err := schemaDir(); err == nil {
		os.RemoveAll(dir)
	}
	os.Exit(code)
}

// write makes a file for each kind that has one group and version, under the
// name by which kubeconform looks for it.
func (s swagger) write(dir string) error {
	s.tighten()
	for name, d := range s.Definitions {
		gvks, _ := d["x-kubernetes-group-version-kind"].([]any)
		if len(gvks) != 1 {
			continue
		}
		gvk := object(gvks[0].(map[string]any))
		data, err := json.Marshal(s.schema(name, gvk))
		if err != nil {
			return err
		}
		group, _, _ := strings.Cut(gvk.text("group"), ".")
		parts := []string{gvk.text("kind"), group, gvk.text("version")}
		file := strings.ToLower(strings.ReplaceAll(strings.Join(parts, "-"), "--", "-")) + ".json"
		if err := os.WriteFile(filepath.Join(dir, file), data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// tighten refuses fields that a definition does not have, and reports what a
// field may be that is written as a number or as text.
func (s swagger) tighten() {
	for _, d := range s.Definitions {
		if _, ok := d["properties"]; ok {
			d["additionalProperties"] = false
		}
	}
	for name, types := range map[string][]string{
		meta + "util.intstr.IntOrString": {"string", "integer"},
		meta + "api.resource.Quantity":   {"string", "number"},
	} {
		s.Definitions[name] = map[string]any{"type": types}
	}
}

// schema is that of one kind, with all that it refers to.
func (s swagger) schema(name string, gvk object) map[string]any {
	version := gvk.text("version")
	if group := gvk.text("group"); group != "" {
		version = group + "/" + version
	}
	needed := map[string]any{}
	s.collect(map[string]any{"$ref": reference + name}, needed)
	return map[string]any{
		"$schema":     "http://json-schema.org/draft-07/schema#",
		"allOf":       []any{map[string]any{"$ref": reference + name}},
		"required":    []string{"apiVersion", "kind", "metadata"},
		"properties":  map[string]any{"apiVersion": map[string]any{"const": version}, "kind": map[string]any{"const": gvk.text("kind")}},
		"definitions": needed,
	}
}

func (s swagger) collect(v any, needed map[string]any) {
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			s.collect(x, needed)
		}
	case map[string]any:
		if ref, ok := v["$ref"].(string); ok {
			name := strings.TrimPrefix(ref, reference)
			if _, ok := needed[name]; !ok {
				needed[name] = s.Definitions[name]
				s.collect(s.Definitions[name], needed)
			}
		}
		for _, x := range v {
			s.collect(x, needed)
		}
	}
}
