package render_test

import (
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/accel-exporter/accel-exporter/rules"
	"github.com/accel-exporter/accel-exporter/rules/engine"
	"github.com/accel-exporter/accel-exporter/rules/render"
)

// rendered returns the rules with a file of values, by name.
func rendered(t *testing.T, values string) map[string]render.Rule {
	t.Helper()
	s := render.Builtin()
	v, err := s.Values("my.yml", []byte(values))
	if err != nil {
		t.Fatal(err)
	}
	files, err := s.Render(v)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]render.Rule{}
	for _, f := range files {
		for _, g := range f.Groups {
			for _, r := range g.Rules {
				all[r.Record+r.Alert] = r
			}
		}
	}
	return all
}

// TestDefaults: without a file the rules are those that are built in.
func TestDefaults(t *testing.T) {
	s := render.Builtin()
	v, err := s.Values("", nil)
	if err != nil {
		t.Fatal(err)
	}
	files, err := s.Render(v)
	if err != nil {
		t.Fatal(err)
	}
	for name, f := range files {
		var want render.File
		data, err := rules.Files.ReadFile(name)
		if err == nil {
			err = yaml.Unmarshal(data, &want)
		}
		if err != nil {
			t.Fatal(err)
		}
		got, _ := render.Encode("", f)
		have, _ := render.Encode("", want)
		if string(got) != string(have) {
			t.Errorf("%s is not the file that is built in", name)
		}
	}
}

// TestLimits: the rules load into Mimir with its default limits.
func TestLimits(t *testing.T) {
	groups := 0
	for name, f := range render.Builtin().Forms {
		for _, g := range f.Groups {
			if groups++; len(g.Rules) > 20 {
				t.Errorf("%s: %s has %d rules; Mimir accepts 20", name, g.Name, len(g.Rules))
			}
		}
	}
	if groups > 70 {
		t.Errorf("%d groups; Mimir accepts 70", groups)
	}
}

func TestValues(t *testing.T) {
	got := rendered(t, `
values: {idle_seconds: 7200, hot_throttle_share: 0.25, rollout_time: 2d, conditions_interval: 1m, exporter_job: gpu, runbooks: "https://wiki.example/gpu"}
labels: {team: hpc}
annotations: {dashboard: "https://grafana.example/{{ $labels.device }}"}
alerts:
  AcceleratorNotAnswering: {for: 3m, severity: warning, labels: {team: night, page: "no"}, annotations: {summary: "{{ $labels.device }} hangs"}}
  GpuThermalThrottling: {enabled: false}
  AccelExporterDown: {for: 15m, keep_firing_for: 1h}
  DriverDriftInPool: {for: 12h}
`)
	for _, c := range []struct{ rule, part, want string }{
		{"AllocationIdle", got["AllocationIdle"].Expr, "> 7200"},
		{"device:GpuThermalThrottling:active", got["device:GpuThermalThrottling:active"].Expr, "> 0.25"},
		{"CudaDriftInPool", got["CudaDriftInPool"].For, "2d"},
		{"DriverDriftInPool", got["DriverDriftInPool"].For, "12h"},
		{"AcceleratorTemperatureNearLimit", got["AcceleratorTemperatureNearLimit"].Expr, "[90s]"},
		{"target:accel_exporter:up", got["target:accel_exporter:up"].Expr, `job=~"gpu"`},
		{"AccelExporterDown", got["AccelExporterDown"].For, "15m"},
		{"AccelExporterDown", got["AccelExporterDown"].KeepFiringFor, "1h"},
		{"AcceleratorNotAnswering", got["AcceleratorNotAnswering"].Expr, "offset 3m)"},
		{"AcceleratorNotAnswering", got["AcceleratorNotAnswering"].Labels["severity"], "warning"},
		{"AcceleratorNotAnswering", got["AcceleratorNotAnswering"].Labels["team"], "night"},
		{"AcceleratorNotAnswering", got["AcceleratorNotAnswering"].Labels["page"], "no"},
		{"AcceleratorNotAnswering", got["AcceleratorNotAnswering"].Annotations["summary"], "{{ $labels.device }} hangs"},
		{"AcceleratorLost", got["AcceleratorLost"].Labels["severity"], "critical"},
		{"AcceleratorLost", got["AcceleratorLost"].Labels["team"], "hpc"},
		{"AcceleratorLost", got["AcceleratorLost"].Annotations["dashboard"], "https://grafana.example/{{ $labels.device }}"},
		{"AcceleratorLost", got["AcceleratorLost"].Annotations["runbook_url"], "https://wiki.example/gpu/AcceleratorLost.md"},
	} {
		if !strings.Contains(c.part, c.want) {
			t.Errorf("%s: no %q in %s", c.rule, c.want, c.part)
		}
	}
	for _, gone := range []string{"GpuThermalThrottling", "device:GpuThermalThrottling:since"} {
		if _, is := got[gone]; is {
			t.Errorf("%s is there although the alert is disabled", gone)
		}
	}
}

// TestWaits: the wait of every alert that has one can be changed.
func TestWaits(t *testing.T) {
	var file, waiting []string
	for _, f := range render.Builtin().Forms {
		for _, g := range f.Groups {
			for _, r := range g.Rules {
				if r.For != "" || r.Wait != "" && r.Wait != render.NoWait {
					waiting = append(waiting, r.Alert)
					file = append(file, "  "+r.Alert+": {for: 77m}\n")
				}
			}
		}
	}
	if len(waiting) < 50 {
		t.Fatalf("only %d alerts wait", len(waiting))
	}
	got := rendered(t, "alerts:\n"+strings.Join(file, ""))
	for _, name := range waiting {
		if r := got[name]; r.For != "77m" && !strings.Contains(r.Expr, "offset 77m)") {
			t.Errorf("%s does not wait 77m", name)
		}
	}
}

func TestMistakes(t *testing.T) {
	for data, want := range map[string]string{
		"value: {}":                                        `my.yml:1: value: unknown key (did you mean values?); accepted here: alerts, annotations, labels, values`,
		"values:\n  idle_second: 60":                       `my.yml:2: values.idle_second: unknown key (did you mean idle_seconds?); accepted here: `,
		"values: {idle_seconds: 30m}":                      `my.yml:1: values.idle_seconds: found "30m"; accepted is a number, from 0 to 1e15`,
		"values: {degraded_for: soon}":                     `values.degraded_for: found "soon"; accepted is a duration such as 30s, 5m or 1h30m`,
		"values: {degraded_for: 10}":                       `values.degraded_for: found the number 10; accepted is text`,
		"values: {conditions_interval: 30m}":               `found "30m"; accepted is a duration such as 30s or 4m, from 10s to 4m`,
		"values: {target: 'job,instance'}":                 `accepted are label names such as job, instance`,
		"values: {target: 'cluster, job'}":                 `with instance among them`,
		"values: {runbooks: wiki/gpu}":                     `accepted is an address such as https://wiki.example/runbooks`,
		`values: {exporter_job: 'a"b'}`:                    `accepted is a regular expression without quotes`,
		"values: {exporter_job: 'a('}":                     `accepted is a regular expression`,
		"values: {exempt_label: label.x}":                  `accepted is the name of a label`,
		"alerts:\n  AcceleratorLst: {}":                    `my.yml:2: alerts.AcceleratorLst: unknown key (did you mean AcceleratorLost?)`,
		"alerts: {AcceleratorLost: {enable: false}}":       `alerts.AcceleratorLost.enable: unknown key (did you mean enabled?); accepted here: annotations, enabled, for, keep_firing_for, labels, severity`,
		"alerts: {AcceleratorLost: {severity: page}}":      `found "page"; accepted is one of critical, warning, info`,
		"alerts:\n  AcceleratorLost:\n    for: 5m":         `my.yml:3: alerts.AcceleratorLost.for: found a wait; accepted is none`,
		"alerts: {AcceleratorLost: {labels: {device: x}}}": `alerts.AcceleratorLost.labels.device: found the label device, which the rules set`,
		"labels:\n  a: b\n  a-b: c":                        `my.yml:3: labels.a-b: found the name "a-b"; accepted are letters`,
		"labels: {severity: page}":                         `labels.severity: found the label severity, which the rules set`,
		"annotations: {9: x}":                              `annotations.9: found the name "9"`,
	} {
		_, err := render.Builtin().Values("my.yml", []byte(data))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error is %v, want %q", data, err, want)
		}
	}
}

// FuzzValues: whatever a file holds, it is refused, or the rules that it makes
// load into the engine, without a name of a value left in them. Texts of a user,
// which may be templates with mistakes, are left to the engine.
func FuzzValues(f *testing.F) {
	f.Add("values: {idle_seconds: 5, exporter_job: 'a|b', runbooks: 'https://x.example', remediator_seen: 3h}")
	f.Add("alerts: {AccelExporterDown: {severity: info, enabled: false}, AccelSourceBlind: {for: 1w}}")
	f.Add("values: {target: 'instance, ${x}'}")
	// Few rules, because the engine parses them each time.
	s := &render.Source{Defaults: render.Builtin().Defaults, Forms: map[string]render.File{"exporter.yaml": render.Builtin().Forms["exporter.yaml"]}}
	f.Fuzz(func(t *testing.T, data string) {
		v, err := s.Values("my.yml", []byte(data))
		if err != nil {
			return
		}
		files, err := s.Render(v)
		if err != nil {
			t.Fatal(err)
		}
		texts := map[string][]byte{}
		for name, file := range files {
			if texts[name], err = render.Encode("", file); err != nil {
				t.Fatal(err)
			}
			for _, g := range file.Groups {
				if i := slices.IndexFunc(g.Rules, func(r render.Rule) bool { return strings.Contains(r.Expr, "${") }); i >= 0 {
					t.Errorf("a name is left in %s", g.Rules[i].Expr)
				}
			}
		}
		if _, err := engine.Parse(texts); err != nil && !strings.Contains(err.Error(), "template") && !strings.Contains(err.Error(), "duration must be greater than 0") {
			t.Error(err)
		}
	})
}
