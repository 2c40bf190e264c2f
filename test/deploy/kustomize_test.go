package deploy

import (
	"cmp"
	"maps"
	"path/filepath"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// build returns what a kustomization becomes.
func build(t *testing.T, dir string) []object {
	t.Helper()
	made, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), filepath.Join(root, dir))
	if err != nil {
		t.Fatal(err)
	}
	data, err := made.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	return documents(t, data)
}

// chartOnly are kinds that only the chart makes: PrometheusRules, dashboards and the
// adapter's configuration.
var chartOnly = map[string]map[string]bool{
	"prometheus-operator": {"PrometheusRule": true, "ConfigMap": true},
}

// A chart does not make namespaces.
const kustomizeOnly = "Namespace"

// TestKustomizations: the base is the chart with its defaults, and each overlay
// the chart with the values of its name, object by object.
func TestKustomizations(t *testing.T) {
	dirs := map[string]string{"default": "deploy/kustomize/base"}
	for _, path := range glob(t, "deploy/kustomize/overlays/*") {
		dirs[filepath.Base(path)] = path
	}
	for name, dir := range dirs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := build(t, dir)
			check(t, all)
			got, want := comparable(all), comparable(objects(t, name))
			for id, o := range want {
				if _, ok := got[id]; !ok && chartOnly[name][o.kind()] {
					delete(want, id)
				}
			}
			maps.DeleteFunc(got, func(_ string, o object) bool { return o.kind() == kustomizeOnly })
			if diff := gocmp.Diff(want, got); diff != "" {
				t.Errorf("chart and kustomization differ (-chart +kustomization):\n%s", diff)
			}
		})
	}
}

// TestCombined: components go together, in any order, and with an image of another
// name.
func TestCombined(t *testing.T) {
	want := comparable(build(t, "test/deploy/testdata/combined"))
	got := comparable(build(t, "test/deploy/testdata/combined-otherwise"))
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("the order matters:\n%s", diff)
	}
	container := podSpec(t, build(t, "test/deploy/testdata/combined")).Containers[0]
	if got := container.Image; got != "own.example/accel-exporter:0.1.0" {
		t.Errorf("the image is %s, in place of the one named by images", got)
	}
	for _, arg := range []string{"--kubernetes.pods", "--alertmanager.url=https://alertmanager.example"} {
		if !slices.Contains(container.Args, arg) {
			t.Errorf("%s is not among %q", arg, container.Args)
		}
	}
	if slices.Contains(container.Args, "--no-collector.kernellog") || container.SecurityContext.Privileged == nil {
		t.Error("the kernel log is not read")
	}
}

// comparable returns objects by their names, without what is Helm's alone and
// with lists of which the order means nothing in one order.
func comparable(all []object) map[string]object {
	by := map[string]object{}
	for _, o := range all {
		trim(map[string]any(o))
		by[o.id()] = o
	}
	return by
}

// helms are labels that Helm's own commands read.
var helms = []string{"app.kubernetes.io/version", "app.kubernetes.io/managed-by", "helm.sh/chart"}

func trim(m map[string]any) {
	for key, v := range m {
		switch v := v.(type) {
		case map[string]any:
			trim(v)
			if key == "labels" {
				maps.DeleteFunc(v, func(name string, _ any) bool { return slices.Contains(helms, name) })
			}
		case []any:
			if len(v) == 0 { // as if it were not there
				delete(m, key)
			}
			for _, x := range v {
				if inner, ok := x.(map[string]any); ok {
					trim(inner)
				}
			}
			if key == "args" || key == "env" || key == "volumes" || key == "volumeMounts" {
				slices.SortFunc(v, func(a, b any) int { return cmp.Compare(label(a), label(b)) })
			}
		}
	}
}

// label is by what an argument, a variable or a volume is sorted.
func label(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case map[string]any:
		return object(v).text("name")
	}
	return ""
}
