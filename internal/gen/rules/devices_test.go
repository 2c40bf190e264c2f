package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

const deviceValues = "{target: job, runbooks: r, conditions_interval: 2m, trends_interval: 15m, weeks_interval: 1h}"

// TestDevices: alerts of all subjects come into three groups, in which the
// holders are recorded once, after what they are looked up for and before the
// alerts that name them; what is kept for a week has a group of its own.
func TestDevices(t *testing.T) {
	files, err := generatedDevices(t, deviceValues, map[string]string{
		"a.yaml": "{rules: [{alert: A, reason: lost}, {alert: B, device: b}], weeks: [{record: w:max, expr: w}], trends: [{record: c:sum, expr: c}, {alert: C, device: 'c:sum[1d]'}]}",
		"b.yaml": "{rules: [{alert: D, reason: hot}]}",
	})
	if err != nil {
		t.Fatal(err)
	}
	var got ruleFile
	if err := yaml.Unmarshal(files["devices.yaml"].rules, &got); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"accel-verdicts  device:accel_verdict:active device_pod:accel_verdict:holder A D",
		"accel-conditions 2m device:B:active device:accel_condition:active device_pod:accel_condition:holder B",
		"accel-weeks 1h w:max",
		"accel-trends 15m c:sum device:C:active device:accel_trend:active device_pod:accel_trend:holder C",
	}
	var have []string
	for _, g := range got.Groups {
		line := []string{g.Name, g.Interval}
		for _, r := range g.Rules {
			line = append(line, r.Record+r.Alert)
		}
		have = append(have, strings.Join(line, " "))
	}
	if !slices.Equal(have, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(have, "\n"), strings.Join(want, "\n"))
	}
}

// TestWait: the wait of an alert is the device's and not that of its holder,
// also in a group whose interval is longer than Prometheus looks back.
func TestWait(t *testing.T) {
	files, err := generatedDevices(t, "{target: job, runbooks: r, trends_interval: 15m}", map[string]string{
		"a.yaml": "{rules: [{alert: A, reason: hot, for: 3m}], trends: [{alert: B, device: b, for: 10m}]}",
	})
	if err != nil {
		t.Fatal(err)
	}
	var got ruleFile
	if err := yaml.Unmarshal(files["devices.yaml"].rules, &got); err != nil {
		t.Fatal(err)
	}
	exprs := map[string]string{}
	for _, g := range got.Groups {
		for _, r := range g.Rules {
			exprs[r.Record+r.Alert] = strings.Join(strings.Fields(r.Expr), " ")
			if r.For != "" {
				t.Errorf("%s has for: %s", r.Alert, r.For)
			}
		}
	}
	for name, want := range map[string]string{
		"device:A:active": `max by (job, device) (accel_device_health_reason{parent="",reason="hot",severity=~"degraded|failed"})`,
		"device:A:since":  "device:A:since and on (job, device) device:A:active or on (job, device) timestamp(device:A:active)",
		"A": "( device_pod:accel_verdict:holder * on (job, device) group_left () device:A:active or on (job, device) device:A:active )" +
			" and on (job, device) (device:A:since == on (job, device) device:A:since offset 3m)",
		"device:B:since": "last_over_time(device:B:since[22m30s]) and on (job, device) device:B:active or on (job, device) timestamp(device:B:active)",
		"B": "( device_pod:accel_trend:holder * on (job, device) group_left () device:B:active or on (job, device) device:B:active )" +
			" and on (job, device) (device:B:since == on (job, device) last_over_time(device:B:since[22m30s] offset 10m))",
	} {
		if exprs[name] != want {
			t.Errorf("%s is\n%s\nwant\n%s", name, exprs[name], want)
		}
	}
}

// TestDeviceMistakes checks the errors for invalid subjects.
func TestDeviceMistakes(t *testing.T) {
	for name, c := range map[string]struct{ subject, want string }{
		"two forms":      {"rules: [{alert: A, device: x, reason: y}]", "A: an alert on devices has either device or reason"},
		"no form":        {"rules: [{alert: A, expr: x}]", "A: an alert on devices has either device or reason"},
		"alert in weeks": {"weeks: [{alert: A, device: x}]", "A: a week only has records"},
		"slow reason":    {"trends: [{alert: A, reason: x}]", "A: a reason is no trend"},
		"unknown key":    {"groups: []", "field groups not found"},
		"no interval":    {"trends: [{alert: A, device: x}]", `accel-trends: interval: not a valid duration string: "often"`},
	} {
		t.Run(name, func(t *testing.T) {
			values := deviceValues
			if name == "no interval" {
				values = strings.Replace(values, "trends_interval: 15m", "trends_interval: often", 1)
			}
			_, err := generatedDevices(t, values, map[string]string{"x.yaml": c.subject})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error is %v, want one with %q", err, c.want)
			}
		})
	}
}

// generatedDevices returns what becomes of the subjects.
func generatedDevices(t *testing.T, values string, subjects map[string]string) (map[string]file, error) {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "devices"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range subjects {
		if err := os.WriteFile(filepath.Join(dir, "devices", name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, "values.yml")
	if err := os.WriteFile(path, []byte(values), 0o600); err != nil {
		t.Fatal(err)
	}
	return generate(dir, path)
}
