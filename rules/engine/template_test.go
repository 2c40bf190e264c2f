package engine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/accel-exporter/accel-exporter/rules/engine"
)

func TestTemplates(t *testing.T) {
	for text, want := range map[string]string{
		"plain": "plain",
		"{{ $labels.device }} on {{ $labels.instance }}: {{ $value | humanize }}":                                                         "a on n1: 1.2k",
		"{{ $externalLabels.cluster }} {{ $externalURL }}":                                                                                "c1 http://n1",
		`{{ range query (printf "reason{device=%q}" $labels.device) | sortByLabel "reason" }}{{ .Labels.reason }}={{ .Value }} {{ end }}`: "cold=2 hot=1 ",
		`{{ with query "max_over_time(temp[5m])" }}{{ . | first | value }}{{ end }}`:                                                      "1200",
		`{{ query "nothing" | len }}`:                                                "0",
		`{{ range query (print "reason" "+") }}x{{ end }}`:                           "<error expanding template: ",
		`{{ query "reason" | first | label 1 }}`:                                     "<error expanding template: ",
		`{{ template "deep" . }}{{ define "deep" }}{{ template "deep" . }}{{ end }}`: "<error expanding template: ",
	} {
		set := parse(t, group("- alert: Hot\n  expr: temp > 90\n  annotations:\n    note: >-\n      "+text))
		w := newWorld(t, "groups: []", func(o *engine.Options) {
			o.Rules, o.ExternalLabels, o.ExternalURL = set, map[string]string{"cluster": "c1"}, "http://n1"
		})
		lines := []string{`temp{device="a"} 1200`, `reason{device="a",reason="hot"} 1`, `reason{device="a",reason="cold"} 2`, `reason{device="b",reason="wet"} 3`}
		w.set(lines...)
		w.at(time.Minute)
		alerts := w.Alerts()
		if len(alerts) != 1 || alerts[0].State != engine.Firing || alerts[0].GeneratorURL != "http://n1/debug/rules#Hot" {
			t.Fatalf("%s: the alert does not fire, or has another page: %v", text, alerts)
		}
		if got := alerts[0].Annotations["note"]; got != want && !(strings.HasPrefix(want, "<") && strings.HasPrefix(got, want)) {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

// TestTemplateSize: the text of a template is bounded.
func TestTemplateSize(t *testing.T) {
	w := newWorld(t, group("- alert: Hot\n  expr: temp > 90\n  annotations: {note: '{{ printf `%100000d` 1 }}'}"))
	w.set("temp 91")
	w.at(0)
	if n := len(w.Alerts()[0].Annotations["note"]); n > 17<<10 {
		t.Errorf("an annotation of %d bytes", n)
	}
}

// TestTemplateFails: a template that fails is logged once when it starts to fail, and
// once when it no longer does.
func TestTemplateFails(t *testing.T) {
	w := newWorld(t, group("- alert: Hot\n  expr: temp > 90\n  annotations: {a: '{{ humanize \"x\" }}'}"))
	w.set("temp 91")
	for i := range 3 {
		w.at(time.Duration(i) * time.Minute)
	}
	if log := w.log.String(); strings.Count(log, "Rule evaluation fails") != 1 || strings.Contains(log, "works again") {
		t.Errorf("while it fails:\n%s", log)
	}
	w.set("temp 1")
	w.at(3 * time.Minute)
	if log := w.log.String(); strings.Count(log, "Rule evaluation works again") != 1 {
		t.Errorf("after the alert:\n%s", log)
	}
}
