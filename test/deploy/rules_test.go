package deploy

import (
	"path/filepath"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

// printed returns what the exporter prints.
func printed(t *testing.T, args ...string) []byte {
	t.Helper()
	out, err := exporter(t, args...)
	if err != nil {
		t.Fatalf("accel-exporter %q: %v: %s", args, err, out)
	}
	return out
}

// rulesOf returns the specs of the PrometheusRules by name.
func rulesOf(all []object) map[string]object {
	specs := map[string]object{}
	for _, o := range all {
		if o.kind() == "PrometheusRule" {
			specs[o.name()] = o.sub("spec")
		}
	}
	return specs
}

// TestRuleValues: the chart makes the same rules of a file of values as
// accel-exporter rules render.
func TestRuleValues(t *testing.T) {
	defaults := load(t, "rules/values.yml")
	files := map[string]object{"every value as it is": {"values": defaults}}
	for _, path := range glob(t, "test/deploy/testdata/rules/*.yml") {
		content := load(t, path)
		files[filepath.Base(path)] = content
	}
	for name, content := range files {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			values, chartValues := filepath.Join(dir, "rules.yml"), filepath.Join(dir, "values.yaml")
			write(t, values, content.yaml(t))
			write(t, chartValues, object{"rules": content, "prometheusRule": object{"enabled": true}}.yaml(t))
			all := objects(t, "", "--values="+chartValues, "--set="+remediatorOn)
			want := rulesOf(documents(t, printed(t, "rules", "render", "--manifests", "--values="+values)))
			got := rulesOf(all)
			if len(want) < 9 {
				t.Fatalf("%d files of rules", len(want))
			}
			if diff := gocmp.Diff(want, got); diff != "" {
				t.Errorf("command and chart differ (-command +chart):\n%s", diff)
			}
		})
	}
}

// TestRuleLabels: the component and the command put the label by which Prometheus
// selects on every manifest.
func TestRuleLabels(t *testing.T) {
	for name, all := range map[string][]object{
		"component": build(t, "test/deploy/testdata/rules"),
		"command":   documents(t, printed(t, "rules", "render", "--manifests", "--label=release=kube-prometheus-stack")),
	} {
		if got, want := rulesOf(all), len(glob(t, "rules/*.yaml")); len(got) != want {
			t.Errorf("%s: %d of %d files", name, len(got), want)
		}
		for _, o := range all {
			if o.kind() == "PrometheusRule" && o.sub("metadata").sub("labels").text("release") != "kube-prometheus-stack" {
				t.Errorf("%s: %s has no label release", name, o.id())
			}
		}
	}
}
