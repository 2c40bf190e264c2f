package alertmanager_test

import (
	"os"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/accel-exporter/accel-exporter/internal/config/strict"
	"github.com/accel-exporter/accel-exporter/rules/alertmanager"
)

// TestDocs: the configuration in docs/alertmanager.md is valid, and the page lists
// every metric.
func TestDocs(t *testing.T) {
	data, err := os.ReadFile("../../docs/alertmanager.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(data)
	_, rest, _ := strings.Cut(page, "```yaml\n")
	text, _, ok := strings.Cut(rest, "```")
	if !ok {
		t.Fatal("no configuration")
	}
	f := file{}
	if err := strict.Decode("docs/alertmanager.md", []byte(text), &f); err != nil {
		t.Fatal(err)
	}
	if s := f.Alertmanager; len(s.Endpoints) != 3 || s.Endpoints[2].HTTP.BasicAuth.Username != "node" {
		t.Errorf("the configuration differs from the page's: %+v", s)
	}
	n := create(t, alertmanager.Options{Settings: settings(address)})
	descs := make(chan *prometheus.Desc, 100)
	n.Describe(descs)
	close(descs)
	for d := range descs {
		name := strings.Split(d.String(), `"`)[1]
		if !strings.Contains(page, "`"+name+"`") {
			t.Errorf("the page lacks %s", name)
		}
	}
}
