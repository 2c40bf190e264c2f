package deploy

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/template"

	"sigs.k8s.io/prometheus-adapter/pkg/config"
	sigsyaml "sigs.k8s.io/yaml"
)

// adapter is the configuration, by the adapter's own type.
func adapter(t *testing.T) config.MetricsDiscoveryConfig {
	t.Helper()
	var c config.MetricsDiscoveryConfig
	if err := sigsyaml.UnmarshalStrict(read(t, "deploy/prometheus-adapter/config.yaml"), &c); err != nil {
		t.Fatal(err)
	}
	return c
}

var seriesName = regexp.MustCompile(`^[a-zA-Z_:][a-zA-Z0-9_:]*`)

// TestAdapter: each rule is about one series that is recorded for pods, and
// what is asked of Prometheus for two pods names both of them.
func TestAdapter(t *testing.T) {
	var rules struct {
		Groups []struct {
			Rules []struct {
				Record, Expr string
			}
		}
	}
	if err := sigsyaml.Unmarshal(read(t, "rules/recordings.yaml"), &rules); err != nil {
		t.Fatal(err)
	}
	recorded := map[string]bool{}
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			recorded[r.Record] = true
		}
	}
	for _, r := range adapter(t).Rules {
		series := seriesName.FindString(r.SeriesQuery)
		if !recorded[series] {
			t.Errorf("rules/recordings.yaml does not record %s", series)
		}
		if r.SeriesQuery != series+`{namespace!="",pod!=""}` {
			t.Errorf("%s: a series without a pod would be asked for", r.SeriesQuery)
		}
		if m, err := regexp.Compile(r.Name.Matches); err != nil || !m.MatchString(series) || m.MatchString(series+"x") {
			t.Errorf("%s does not stand for %s alone: %v", r.Name.Matches, series, err)
		}
		for _, label := range []string{"namespace", "pod"} {
			if r.Resources.Overrides[label].Resource != label {
				t.Errorf("%s: the label %s is not the resource", series, label)
			}
		}
		if want := " by (pod) (" + series + `{namespace="ns",pod=~"a|b"})`; !strings.HasSuffix(query(t, r.MetricsQuery, series), want) {
			t.Errorf("asked is %s, want …%s", query(t, r.MetricsQuery, series), want)
		}
	}
}

// query fills in a template as the adapter does.
func query(t *testing.T, text, series string) string {
	t.Helper()
	made, err := template.New("").Delims("<<", ">>").Option("missingkey=error").Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	err = made.Execute(&out, map[string]string{"Series": series, "LabelMatchers": `namespace="ns",pod=~"a|b"`, "GroupBy": "pod"})
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestAutoscalers: the examples ask for metrics that the adapter serves.
func TestAutoscalers(t *testing.T) {
	var served []string
	for _, r := range adapter(t).Rules {
		served = append(served, r.Name.As)
	}
	for _, path := range glob(t, "deploy/prometheus-adapter/hpa-*.yaml") {
		for _, m := range one(t, documents(t, read(t, path)), "HorizontalPodAutoscaler").sub("spec")["metrics"].([]any) {
			name := object(m.(map[string]any)).sub("pods").sub("metric").text("name")
			if !slices.Contains(served, name) {
				t.Errorf("%s: %q is not among %q", path, name, served)
			}
		}
	}
}
