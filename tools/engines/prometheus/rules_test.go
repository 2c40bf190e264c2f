// Package prometheus checks that Prometheus 2.53 loads and evaluates the rules.
package prometheus

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/model/timestamp"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/promqltest"
	"gopkg.in/yaml.v3"
)

// TestRules evaluates every rule once a minute over the series of each scenario,
// with the recorded series of the rules before it.
func TestRules(t *testing.T) {
	dir := os.Getenv("RULES")
	paths, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("RULES=%q: %d files, %v", dir, len(paths), err)
	}
	var groups []rulefmt.RuleGroup
	for _, path := range paths {
		f, errs := rulefmt.ParseFile(path)
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		groups = append(groups, f.Groups...)
	}
	data, err := os.ReadFile(filepath.Join(dir, "tests/scenarios.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Tests []struct {
			Name, Interval string
			Series         []struct{ Series, Values string } `yaml:"input_series"`
		}
	}
	if err := yaml.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	e := promql.NewEngine(promql.EngineOpts{MaxSamples: 50_000_000, Timeout: time.Minute})
	yielded := map[string]bool{}
	for _, test := range file.Tests {
		load := "load " + test.Interval + "\n"
		for _, s := range test.Series {
			load += "  " + s.Series + " " + s.Values + "\n"
		}
		db := promqltest.LoadedStorage(t, load)
		for step := range 30 {
			ts := time.Unix(0, 0).Add(time.Duration(step) * time.Minute)
			for _, g := range groups {
				for _, r := range g.Rules {
					q, err := e.NewInstantQuery(t.Context(), db, nil, r.Expr.Value, ts)
					if err != nil {
						t.Fatalf("%s%s: %v", r.Record.Value, r.Alert.Value, err)
					}
					result := q.Exec(t.Context())
					vector, err := result.Vector()
					if err != nil {
						t.Errorf("%s: %s%s at %s: %v", test.Name, r.Record.Value, r.Alert.Value, ts, err)
					}
					yielded[r.Record.Value+r.Alert.Value] = yielded[r.Record.Value+r.Alert.Value] || len(vector) > 0
					app := db.Appender(t.Context())
					for _, s := range vector {
						if r.Record.Value == "" {
							break
						}
						b := labels.NewBuilder(s.Metric).Set(labels.MetricName, r.Record.Value)
						if _, err := app.Append(0, b.Labels(), timestamp.FromTime(ts), s.F); err != nil {
							t.Errorf("%s: %v", r.Record.Value, err)
						}
					}
					if err := app.Commit(); err != nil {
						t.Error(err)
					}
					q.Close()
				}
			}
		}
		db.Close()
	}
	some := 0
	for _, yes := range yielded {
		if yes {
			some++
		}
	}
	fmt.Println(strings.TrimSpace(fmt.Sprintf("Prometheus 2.53: %d groups, %d rules evaluated, %d of them with a result", len(groups), len(yielded), some)))
}
