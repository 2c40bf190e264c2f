package deploy

import (
	"regexp"
	"strings"
	"testing"
)

var (
	code  = regexp.MustCompile("`([^`\n]+)`")
	value = regexp.MustCompile(`^([a-zA-Z]+(?:\.[a-zA-Z]+)+)(?:=.*)?$`)
)

// TestDocumentedValues: a value of the chart that a page names is one.
func TestDocumentedValues(t *testing.T) {
	values := load(t, chart+"/values.yaml")
	pages := []string{"docs/install.md", "docs/remediator.md", "docs/dashboards.md", "deploy/README.md", "deploy/prometheus-adapter/README.md", chart + "/README.md"}
	found := 0
	for _, page := range pages {
		for _, m := range code.FindAllSubmatch(read(t, page), -1) {
			path := value.FindSubmatch(m[1])
			if path == nil {
				continue
			}
			keys := strings.Split(string(path[1]), ".")
			// A section with its own form is not checked.
			if len(values.sub(keys[0])) == 0 || strings.HasSuffix(string(path[1]), ".yml") {
				continue
			}
			found++
			at := values
			for i, key := range keys {
				if _, ok := at[key]; !ok && len(at) > 0 {
					t.Errorf("%s: the chart has no value %s", page, strings.Join(keys[:i+1], "."))
					break
				}
				at = at.sub(key)
			}
		}
	}
	if found < 30 {
		t.Errorf("only %d values are named", found)
	}
}
