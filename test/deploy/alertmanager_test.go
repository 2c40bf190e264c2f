package deploy

import (
	"regexp"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

// TestAlertmanagerConfig: the AlertmanagerConfig has the routes, inhibitions and
// receivers of alertmanager.yml.
func TestAlertmanagerConfig(t *testing.T) {
	want := operatorForm(map[string]any(load(t, "deploy/prometheus/alertmanager.yml")))
	got := map[string]any(load(t, "deploy/prometheus/alertmanagerconfig.yaml").sub("spec"))
	if diff := gocmp.Diff(want, any(got)); diff != "" {
		t.Errorf("the two differ (-alertmanager.yml +alertmanagerconfig.yaml):\n%s", diff)
	}
}

var (
	underscore  = regexp.MustCompile(`_[a-z]`)
	matcherText = regexp.MustCompile(`^(\w+)\s*(=~|!~|!=|=)\s*(?:"([^"]*)"|([^"\s]+))$`)
)

// operatorForm returns a part of a configuration of Alertmanager as the Prometheus
// Operator reads it: keys such as groupBy, and matchers that are divided into name,
// type and value.
func operatorForm(v any) any {
	switch v := v.(type) {
	case string:
		if m := matcherText.FindStringSubmatch(v); m != nil {
			return map[string]any{"name": m[1], "matchType": m[2], "value": m[3] + m[4]}
		}
	case []any:
		for i := range v {
			v[i] = operatorForm(v[i])
		}
	case map[string]any:
		all := map[string]any{}
		for key, x := range v {
			key = strings.Replace(key, "_matchers", "_match", 1)
			all[underscore.ReplaceAllStringFunc(key, func(s string) string { return strings.ToUpper(s[1:]) })] = operatorForm(x)
		}
		return all
	}
	return v
}
