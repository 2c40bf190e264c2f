package engine_test

import (
	"context"
	"math"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/template"

	"github.com/accel-exporter/accel-exporter/rules/engine"
)

// names collects the template functions that Prometheus registers.
type names []string

func (n *names) Enable(category, name string) {
	if category == "templating_functions" {
		*n = append(*n, name)
	}
}
func (n *names) Disable(string, string)   {}
func (n *names) Set(string, string, bool) {}
func (n *names) Get() map[string]map[string]bool {
	return nil
}

// TestFunctions: every template function of Prometheus exists.
func TestFunctions(t *testing.T) {
	var all names
	template.RegisterFeatures(&all)
	if len(all) < 25 {
		t.Fatalf("Prometheus registers %d functions: %q", len(all), all)
	}
	for _, name := range all {
		// The parser refuses unknown functions; it does not check arguments.
		text := "groups: [{name: g, rules: [{alert: A, expr: up, annotations: {a: '{{ " + name + " }}'}}]}]"
		if _, err := engine.Parse(map[string][]byte{"f.yaml": []byte(text)}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// templates call each function as rules call it.
var templates = []string{
	"{{ $value }} {{ printf `%.2f %v` $value $value }}",
	"{{ humanize $value }} {{ humanize1024 $value }} {{ humanizePercentage $value }} {{ humanizeDuration $value }}",
	"{{ humanizeTimestamp $value }}", "{{ (toTime $value).Year }}", "{{ toDuration $value }}", "{{ toDuration $value | humanizeDuration }}",
	"{{ humanize `1e-7` }} {{ humanize `x` }}", "{{ humanize 12345 }}", "{{ parseDuration `1h30m` }} {{ parseDuration `-5s` }}", "{{ parseDuration $labels.device }}",
	"{{ now }} {{ now | humanizeTimestamp }}", "{{ externalURL }}{{ pathPrefix }} {{ $externalURL }}", "{{ graphLink `a{b=\"c\"}` }} {{ tableLink `a + b` }}",
	"{{ title $labels.device }} {{ toUpper $labels.device }} {{ toLower $labels.device }} {{ urlQueryEscape $labels.device }} {{ safeHtml $labels.device }}",
	"{{ stripPort $labels.instance }} {{ stripDomain $labels.instance }}", "{{ stripDomain `10.0.0.1:80` }} {{ stripDomain `10.0.0.1` }} {{ stripPort `[::1]:9` }}",
	"{{ match `^a` $labels.device }} {{ reReplaceAll `(.)b` `$1-` $labels.device }}", "{{ match $labels.device `x` }}",
	"{{ range query `q` | sortByLabel `device` }}{{ .Labels.device }}={{ .Value }} {{ label `node` . }}{{ strvalue . }}{{ value . | humanize }} {{ end }}",
	"{{ with query `q` }}{{ . | first | label `device` }}{{ end }}", "{{ query `q` | len }}", "{{ define `t` }}{{ .arg0 }}-{{ .arg1 }}{{ end }}{{ template `t` (args 1 $labels.device) }}",
	"{{ $labels.missing }}|{{ .Labels.missing }}|{{ $externalLabels.x }}", "{{ index $labels `device` }}", "{{ if gt $value 5.0 }}many{{ else }}few{{ end }}",
}

// address matches what fmt makes of a pointer: a template can print a sample of a query.
var address = regexp.MustCompile(`0x[0-9a-f]+`)

// FuzzTemplates: a template expands to the same text as in Prometheus, and fails if
// it fails there.
func FuzzTemplates(f *testing.F) {
	for i, text := range templates {
		for _, v := range []float64{0, 1, -1, 0.5, 999.96, 1023, 1024, 1e6, 123456789, -2e-7, 1.7e9, 1e30, math.NaN(), math.Inf(1), math.Inf(-1), math.SmallestNonzeroFloat64} {
			f.Add(text, v, [...]string{"gpu a.b", "ab:9400", "n1.example.org:9400", "", "ÄÖ ß", "10.1.2.3:1"}[i%6])
		}
	}
	external := &url.URL{Scheme: "http", Host: "n1:9400", Path: "/x"}
	at := time.UnixMilli(1_700_000_000_123).UTC()
	f.Fuzz(func(t *testing.T, text string, value float64, label string) {
		if !utf8.ValidString(label) || !utf8.ValidString(text) || len(text) > 500 || len(label) > 100 {
			t.Skip()
		}
		own := map[string]string{"device": label, "instance": label}
		answer := promql.Vector{
			{F: value, Metric: labels.FromStrings("device", "b", "node", label)},
			{F: 1, Metric: labels.FromStrings("device", "a")},
		}
		got, err := engine.ExpandTemplate(text, own, value, at, external, answer)
		ask := func(context.Context, string, time.Time) (promql.Vector, error) { return answer, nil }
		const head = "{{$labels := .Labels}}{{$externalLabels := .ExternalLabels}}{{$externalURL := .ExternalURL}}{{$value := .Value}}"
		data := template.AlertTemplateData(own, nil, external.String(), promql.Sample{F: value})
		want, wantErr := template.NewTemplateExpander(t.Context(), head+text, "__alert_A", data, model.TimeFromUnixNano(at.UnixNano()), ask, external, nil).Expand()
		switch {
		case len(want) > 16<<10, strings.Count(text, "query") > 1 || strings.Contains(text, "define") && strings.Contains(text, "query"):
			// Prometheus has no limits on these.
		case (err == nil) != (wantErr == nil):
			t.Errorf("%q: error %v, Prometheus' is %v", text, err, wantErr)
		case err == nil && address.ReplaceAllString(got, "") != address.ReplaceAllString(want, ""):
			t.Errorf("%q of %v, %q:\n got %q\nwant %q", text, value, label, got, want)
		}
	})
}
