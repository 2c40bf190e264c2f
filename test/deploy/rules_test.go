package deploy

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/accel-exporter/accel-exporter/rules/engine"
)

// ruleFiles are rule files by name, without their extension.
type ruleFiles map[string]object

// shipped returns the rule files that the chart installs by default, and others.
func shipped(t *testing.T, others ...string) ruleFiles {
	t.Helper()
	all := ruleFiles{}
	for _, path := range glob(t, "rules/*.yaml") {
		name := strings.TrimSuffix(filepath.Base(path), ".yaml")
		if name != "hosts" && name != "remediator" || slices.Contains(others, name) {
			all[name] = load(t, path)
		}
	}
	return all
}

// installed returns the rule files in the PrometheusRules.
func installed(all []object) ruleFiles {
	files := ruleFiles{}
	for _, o := range all {
		if o.kind() == "PrometheusRule" {
			files[strings.TrimPrefix(o.name(), "accel-exporter-")] = o.sub("spec")
		}
	}
	return files
}

// change calls f with every rule, and removes it if f returns false.
func (files ruleFiles) change(f func(rule object) bool) {
	for _, file := range files {
		for _, g := range file["groups"].([]any) {
			g := g.(map[string]any)
			g["rules"] = slices.DeleteFunc(g["rules"].([]any), func(r any) bool { return !f(r.(map[string]any)) })
		}
	}
}

// TestRules: the installed rules are the rules of the rule files, and rules of
// the remediator only with it.
func TestRules(t *testing.T) {
	for name, want := range map[string]ruleFiles{"prometheus-operator": shipped(t), "remediator-everything": shipped(t, "remediator")} {
		if diff := gocmp.Diff(want, installed(objects(t, name))); diff != "" {
			t.Errorf("%s: files and chart differ (-files +chart):\n%s", name, diff)
		}
	}
}

// TestSelectedRules: a selection has the rules of its files less the disabled alerts,
// the extra groups, and its labels on every alert that has not set them. Prometheus
// and the nodes evaluate the same, and the engine accepts it.
func TestSelectedRules(t *testing.T) {
	selection := load(t, chart+"/ci/rules-values.yaml").sub("rules")
	disabled, labels := selection["disabled"].([]any), selection.sub("labels")
	want := shipped(t, "hosts")
	delete(want, "recordings")
	want.change(func(r object) bool { return !slices.Contains(disabled, r["alert"]) })
	want["extra"] = object{"groups": selection["extra"]}
	want.change(func(r object) bool {
		if r.text("alert") != "" {
			merged := maps.Clone(labels)
			maps.Copy(merged, r.sub("labels"))
			r["labels"] = map[string]any(merged)
		}
		return true
	})
	all := objects(t, "rules")
	if diff := gocmp.Diff(want, installed(all)); diff != "" {
		t.Errorf("the selection and the PrometheusRules differ (-selection +chart):\n%s", diff)
	}
	node, texts := ruleFiles{}, map[string][]byte{}
	for name, text := range one(t, all, "ConfigMap").sub("data") {
		texts[name] = []byte(text.(string))
		var file object
		if err := sigsyaml.Unmarshal(texts[name], &file); err != nil {
			t.Fatal(err)
		}
		node[strings.TrimSuffix(name, ".yaml")] = file
	}
	if diff := gocmp.Diff(want, node); diff != "" {
		t.Errorf("the selection and the rules of the nodes differ (-selection +chart):\n%s", diff)
	}
	if _, err := engine.Parse(texts); err != nil {
		t.Error(err)
	}
}

// TestBuiltinRules: nodes evaluate the built-in rules if nothing selects others.
func TestBuiltinRules(t *testing.T) {
	all := objects(t, "", "--set=nodeRules.alertmanagers={http://am:9093}")
	if i := slices.IndexFunc(all, func(o object) bool { return o.kind() == "ConfigMap" }); i >= 0 {
		t.Errorf("%s was made", all[i].id())
	}
	for _, arg := range podSpec(t, all).Containers[0].Args {
		if strings.HasPrefix(arg, "--rules.file") {
			t.Error(arg)
		}
	}
}

// TestRulesConfigMap: the component rules has the rule files as they are, in the
// namespace of Prometheus, with the optional ones left out.
func TestRulesConfigMap(t *testing.T) {
	for _, o := range build(t, "test/deploy/testdata/rules") {
		if o.name() != "accel-rules" {
			continue
		}
		want := object{}
		for name := range shipped(t, "remediator") {
			want[name+".yaml"] = string(read(t, "rules/"+name+".yaml"))
		}
		if diff := gocmp.Diff(want, o.sub("data")); diff != "" {
			t.Errorf("files and ConfigMap differ (-files +ConfigMap):\n%s", diff)
		}
		if meta := o.sub("metadata"); meta.text("namespace") != "monitoring" || meta.sub("labels").text("app.kubernetes.io/name") != "accel-exporter" {
			t.Errorf("metadata: %v", meta)
		}
		return
	}
	t.Error("the component has no ConfigMap accel-rules")
}
