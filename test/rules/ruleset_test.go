package differential

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/accel-exporter/accel-exporter/rules/engine"
)

// ruleset is rule files made into one.
type ruleset struct {
	Groups []map[string]any `yaml:"groups"`
}

// readRules makes rule files into one, with the groups of a cluster under a name by which
// a node evaluates them.
func readRules(t testing.TB, patterns ...string) string {
	t.Helper()
	var all ruleset
	for _, pattern := range patterns {
		paths, err := filepath.Glob(pattern)
		if err != nil || len(paths) == 0 {
			t.Fatalf("%s: %v, %d files", pattern, err, len(paths))
		}
		for _, path := range paths {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var one ruleset
			if err := yaml.Unmarshal(data, &one); err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			all.Groups = append(all.Groups, one.Groups...)
		}
	}
	for _, g := range all.Groups {
		g["name"] = strings.Replace(g["name"].(string), engine.ClusterPrefix, "many-", 1)
	}
	text, err := yaml.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
