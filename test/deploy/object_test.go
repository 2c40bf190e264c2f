package deploy

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	sigsyaml "sigs.k8s.io/yaml"
)

// root is the repository, seen from this package.
const root = "../.."

// object is one document of a manifest.
type object map[string]any

func (o object) kind() string { return o.text("kind") }
func (o object) name() string { return o.sub("metadata").text("name") }
func (o object) id() string   { return o.kind() + "/" + o.name() }

func (o object) text(key string) string {
	s, _ := o[key].(string)
	return s
}

func (o object) sub(key string) object {
	m, _ := o[key].(map[string]any)
	return m
}

func (o object) yaml(t *testing.T) []byte {
	t.Helper()
	data, err := sigsyaml.Marshal(map[string]any(o))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// load returns a file of YAML.
func load(t *testing.T, name string) object {
	t.Helper()
	var o object
	if err := sigsyaml.Unmarshal(read(t, name), &o); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return o
}

// documents returns the objects of a manifest.
func documents(t *testing.T, manifest []byte) []object {
	t.Helper()
	var all []object
	reader := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(manifest)))
	for {
		doc, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		var o object
		if err := sigsyaml.UnmarshalStrict(doc, &o); err != nil {
			t.Fatalf("%v in\n%s", err, doc)
		}
		if len(o) > 0 {
			all = append(all, o)
		}
	}
}

// one returns the only object of a kind.
func one(t *testing.T, all []object, kind string) object {
	t.Helper()
	var found []object
	for _, o := range all {
		if o.kind() == kind {
			found = append(found, o)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d objects of kind %s, want 1", len(found), kind)
	}
	return found[0]
}

// podSpec is that of the DaemonSet, by Kubernetes' own type.
func podSpec(t *testing.T, all []object) *corev1.PodSpec {
	t.Helper()
	return podSpecOf(t, one(t, all, "DaemonSet"))
}

func podSpecOf(t *testing.T, o object) *corev1.PodSpec {
	t.Helper()
	var spec corev1.PodSpec
	template := o.sub("spec").sub("template")
	if err := sigsyaml.UnmarshalStrict(template.sub("spec").yaml(t), &spec); err != nil {
		t.Fatal(err)
	}
	return &spec
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// write writes a file, and makes its folder.
func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// glob returns files of the repository by a pattern; there is at least one.
func glob(t *testing.T, pattern string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(root, pattern))
	if err != nil || len(paths) == 0 {
		t.Fatalf("%s: %d files, %v", pattern, len(paths), err)
	}
	for i := range paths {
		paths[i] = strings.TrimPrefix(paths[i], root+"/")
	}
	return paths
}
