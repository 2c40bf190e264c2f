package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestCurrent: the committed rules are those that templates and values make.
func TestCurrent(t *testing.T) {
	t.Chdir("../../..")
	if err := run([]string{"-check"}, io.Discard); err != nil {
		t.Error(err)
	}
}

// TestMistakes checks the errors for invalid templates or values.
func TestMistakes(t *testing.T) {
	for name, c := range map[string]struct{ template, values, want string }{
		"no value": {
			"groups: [{name: g, rules: [{alert: A, expr: 'x > ${limit}'}]}]", "target: job", "g: A: no value for ${limit}",
		},
		"value without a use": {
			"groups: [{name: g, rules: [{record: r, expr: x}]}]", "limit: 1", "no rule uses limit",
		},
		"device outside devices": {
			"groups: [{name: g, rules: [{alert: A, expr: x, device: y}]}]", "{}", "g: A: a rule here has expr; device and reason belong",
		},
		"no form": {
			"groups: [{name: g, rules: [{alert: A}]}]", "{}", "g: A: a rule here has expr",
		},
		"unknown key": {
			"groups: [{name: g, rules: [{alert: A, expression: y}]}]", "{}", "line 1: field expression not found",
		},
		"values in a circle": {
			"groups: [{name: g, rules: [{record: r, expr: '${a}'}]}]", "{a: '${b}', b: '${a}'}", "name each other",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := generated(t, c.template, c.values)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error is %v, want one with %q", err, c.want)
			}
		})
	}
}

// TestValues: a number that is changed is changed in the rule and in the
// manifest, and templates of Prometheus pass as they are.
func TestValues(t *testing.T) {
	f, err := generated(t, "groups: [{name: g, rules: [{alert: A, expr: 'x > ${limit}', severity: info, summary: '{{ $value }} of ${limit}'}]}]", "{limit: 7, runbooks: https://example.org}")
	if err != nil {
		t.Fatal(err)
	}
	for _, data := range [][]byte{f.rules, f.manifest} {
		for _, want := range []string{"expr: x > 7\n", "'{{ $value }} of 7'", "https://example.org/A.md"} {
			if !strings.Contains(string(data), want) {
				t.Errorf("no %q in\n%s", want, data)
			}
		}
	}
}

// FuzzValues: whatever a value holds, what is written is YAML in which no name
// is left, or there is an error.
func FuzzValues(f *testing.F) {
	f.Add("5")
	f.Add("${target}")
	f.Add("${x}")
	f.Add("a: b\n- c # d")
	f.Fuzz(func(t *testing.T, value string) {
		v := values{"x": value, "target": "job", "runbooks": "r"}
		g := templateGroup{Name: "g", Rules: []templateRule{{Alert: "A", Expr: "x > ${x}", Summary: "${x}"}}}
		rules, err := (&template{Groups: []templateGroup{g}}).make(v, map[string]bool{})
		if err != nil {
			return
		}
		if reference.MatchString(rules.Groups[0].Rules[0].Expr) {
			t.Errorf("a name is left in %q", rules.Groups[0].Rules[0].Expr)
		}
		out, err := encode("f.yaml", rules)
		if err != nil {
			t.Fatal(err)
		}
		var back ruleFile
		if err := yaml.Unmarshal(out.rules, &back); err != nil {
			t.Errorf("%v in\n%s", err, out.rules)
		}
	})
}

// generated returns what becomes of one template.
func generated(t *testing.T, tmpl, values string) (file, error) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"t.yaml": tmpl, "values.yml": values} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	files, err := generate(dir, filepath.Join(dir, "values.yml"))
	return files["t.yaml"], err
}
