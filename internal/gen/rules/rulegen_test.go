package main

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/accel-exporter/accel-exporter/rules/render"
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
	for name, c := range map[string]struct{ file, template, values, want string }{
		"no value": {
			"t.yaml", "groups: [{name: g, rules: [{alert: A, expr: 'x > ${limit}'}]}]", "target: job", "g: A: no value for ${limit}",
		},
		"value without a use": {
			"t.yaml", "groups: [{name: g, rules: [{record: r, expr: x}]}]", "limit: 1", "no rule uses limit",
		},
		"device outside devices": {
			"t.yaml", "groups: [{name: g, rules: [{alert: A, expr: x, device: y}]}]", "{}", "g: A: a rule here has expr; device and reason belong",
		},
		"no form": {
			"t.yaml", "groups: [{name: g, rules: [{alert: A}]}]", "{}", "g: A: a rule here has expr",
		},
		"unknown key": {
			"t.yaml", "groups: [{name: g, rules: [{alert: A, expression: y}]}]", "{}", "line 1: field expression not found",
		},
		"a chain longer than a group": {
			"t.yaml", "groups: [{name: g, rules: [" + strings.Join(records(21, "r0"), ", ") + "]}]", "{}", "g: r0 to r20: 21 rules depend on each other; a group has room for 20",
		},
		"two forms":              {"devices/x.yaml", "rules: [{alert: A, device: x, reason: y}]", deviceValues, "A: an alert on devices has either device or reason"},
		"no form of a device":    {"devices/x.yaml", "rules: [{alert: A, expr: x}]", deviceValues, "A: an alert on devices has either device or reason"},
		"alert in weeks":         {"devices/x.yaml", "weeks: [{alert: A, device: x}]", deviceValues, "A: a week only has records"},
		"slow reason":            {"devices/x.yaml", "trends: [{alert: A, reason: x}]", deviceValues, "A: a reason is no trend"},
		"no rank":                {"devices/x.yaml", "rules: [{alert: A, reason: x, severity: critical}]", deviceValues, "A: a critical alert on a reason needs a place in ranks"},
		"rank of none":           {"devices/x.yaml", "{ranks: [B], rules: [{alert: A, reason: x}]}", deviceValues, "ranks: B is there twice or is no alert on a reason"},
		"ranked twice":           {"devices/x.yaml", "{ranks: [A, A], rules: [{alert: A, reason: x}]}", deviceValues, "ranks: A is there twice or is no alert on a reason"},
		"unknown key of devices": {"devices/x.yaml", "groups: []", deviceValues, "field groups not found"},
		"no interval":            {"devices/x.yaml", "trends: [{alert: A, device: x}]", strings.Replace(deviceValues, "15m", "often", 1), `accel-trends: interval: not a valid duration string: "often"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := generated(t, c.values, map[string]string{c.file: c.template})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error is %v, want one with %q", err, c.want)
			}
		})
	}
}

// records returns rules r0, r1 …, of which all but the first read a series.
func records(n int, reads string) []string {
	all := []string{"{record: r0, expr: x}"}
	for i := 1; i < n; i++ {
		all = append(all, "{record: r"+strconv.Itoa(i)+", expr: "+reads+"}")
	}
	return all
}

// TestSplit: a group that Mimir would refuse is divided, and what reads a record
// stays in the group of the record, after it.
func TestSplit(t *testing.T) {
	all := append(records(25, "x"), "{alert: A, expr: 'r24 > 1'}", "{alert: B, expr: 'r24 > 2 and r3'}")
	files, err := generated(t, "runbooks: https://x.example", map[string]string{"t.yaml": "groups: [{name: g, interval: 5m, rules: [" + strings.Join(all, ", ") + "]}]"})
	if err != nil {
		t.Fatal(err)
	}
	names := map[string][]string{}
	for _, g := range files["t.yaml"].Groups {
		if g.Interval != "5m" || len(g.Rules) > maxRules {
			t.Errorf("%s: interval %s, %d rules", g.Name, g.Interval, len(g.Rules))
		}
		for _, r := range g.Rules {
			names[g.Name] = append(names[g.Name], r.Record+r.Alert)
		}
	}
	if len(names) != 2 || len(names["g"])+len(names["g-2"]) != len(all) {
		t.Fatalf("groups are %q", names)
	}
	at := func(name string) int { return slices.Index(names["g-2"], name) }
	if at("r24") < 0 || at("r24") > at("A") || at("r24") > at("B") || at("r3") < 0 || at("r3") > at("B") {
		t.Errorf("the second group is %q", names["g-2"])
	}
}

// generated returns what becomes of templates by their path.
func generated(t *testing.T, values string, templates map[string]string) (map[string]render.File, error) {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "devices"), 0o700); err != nil {
		t.Fatal(err)
	}
	templates["values.yml"] = values
	for name, text := range templates {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, files, err := generate(dir, filepath.Join(dir, "values.yml"))
	return files, err
}
