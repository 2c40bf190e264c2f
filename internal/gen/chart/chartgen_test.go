package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const someReadme = "# Chart\n" + tableBegin + "old\n" + tableEnd + "end\n"

// repository returns a folder with a chart, rules and a dashboard in it.
func repository(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	all := map[string]string{
		chart + "/values.yaml":                  "# What\n# it is.\na: 1\nb:\n  # Inside | here.\n  c: [x]\n",
		chart + "/README.md":                    someReadme,
		"rules/devices.yaml":                    "groups: []\n",
		"dashboards/fleet.json":                 "{}\n",
		"deploy/prometheus-adapter/config.yaml": "rules: []\n",
		"deploy/remediator/policy.yml":          "settle: 5m\n",
	}
	for name, text := range files {
		all[name] = text
	}
	for name, text := range all {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestRun(t *testing.T) {
	root := repository(t, map[string]string{chart + "/files/rules/gone.yaml": "groups: []\n"})
	if err := run(root, true); err == nil || !strings.Contains(err.Error(), "gone.yaml is a copy of nothing: run make generate") {
		t.Errorf("a file that is left over: %v", err)
	}
	if err := run(root, false); err != nil {
		t.Fatal(err)
	}
	if err := run(root, true); err != nil {
		t.Errorf("what was just written: %v", err)
	}
	for _, name := range []string{"files/rules/devices.yaml", "files/dashboards/fleet.json", "files/prometheus-adapter/config.yaml", "files/remediator/policy.yml"} {
		if _, err := os.Stat(filepath.Join(root, chart, name)); err != nil {
			t.Error(err)
		}
	}
	got, err := os.ReadFile(filepath.Join(root, chart, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	want := "# Chart\n" + tableBegin + "| value | default | meaning |\n|---|---|---|\n| `a` | `1` | What it is. |\n| `b.c` | `[\"x\"]` | Inside \\| here. |\n" + tableEnd + "end\n"
	if string(got) != want {
		t.Errorf("README is\n%s\nwant\n%s", got, want)
	}
	for _, name := range []string{"rules/devices.yaml", "dashboards/fleet.json"} {
		changed := repositoryLike(t, root, name)
		if err := run(changed, true); err == nil || !strings.Contains(err.Error(), "is not current: run make generate") {
			t.Errorf("%s has changed: %v", name, err)
		}
	}
}

// repositoryLike returns a copy of a repository in which one file is other.
func repositoryLike(t *testing.T, root, changed string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(root)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, changed), []byte("{other: true}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestMistakes(t *testing.T) {
	for name, c := range map[string]struct{ file, text, want string }{
		"no comment": {chart + "/values.yaml", "a: 1\n", "values.yaml: line 1: a has no comment"},
		"not yaml":   {chart + "/values.yaml", "a: [\n", "values.yaml: yaml:"},
		"a list":     {chart + "/values.yaml", "[]\n", "values.yaml: not a mapping"},
		"no marks":   {chart + "/README.md", "# Chart\n", "README.md: the lines between which the table stands are missing"},
	} {
		t.Run(name, func(t *testing.T) {
			err := run(repository(t, map[string]string{c.file: c.text}), false)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error is %v, want one with %q", err, c.want)
			}
		})
	}
}
