package tools

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/storage"
)

// board is what of a dashboard asks the data source.
type board struct {
	UID         string
	Templating  struct{ List []choice }
	Panels      []boardPanel
	Annotations struct {
		List []struct{ Name, Expr string }
	}
}

type boardPanel struct {
	Type, Title string
	Interval    string
	Targets     []struct {
		RefID          string `json:"refId"`
		Expr, Interval string
		Instant        bool
	}
	Panels []boardPanel
}

// choice is a variable.
type choice struct {
	Name, Type, Regex, AllValue string
	Multi                       bool
	Query                       json.RawMessage
}

func (c choice) query(t *testing.T) string {
	t.Helper()
	var q struct{ Query string }
	if err := json.Unmarshal(c.Query, &q); err != nil {
		t.Fatalf("%s: %v", c.Name, err)
	}
	return q.Query
}

// ask is one query of a dashboard, named as a person finds it.
type ask struct {
	name, expr string
	instant    bool
}

func loadBoards(t *testing.T) []board {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(root, "dashboards/*.json"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("%d dashboards, %v", len(paths), err)
	}
	var all []board
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var b board
		if err := json.Unmarshal(data, &b); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		all = append(all, b)
	}
	return all
}

// loadBoard returns the dashboard with a uid.
func loadBoard(t *testing.T, uid string) board {
	t.Helper()
	all := loadBoards(t)
	i := slices.IndexFunc(all, func(b board) bool { return b.UID == uid })
	if i < 0 {
		t.Fatalf("there is no dashboard %s", uid)
	}
	return all[i]
}

// panel returns the panel with a title.
func (b board) panel(t *testing.T, title string) boardPanel {
	t.Helper()
	i := slices.IndexFunc(b.Panels, func(p boardPanel) bool { return p.Title == title })
	if i < 0 {
		t.Fatalf("%s has no panel %s", b.UID, title)
	}
	return b.Panels[i]
}

// vector evaluates an expression at a time.
func vector(t *testing.T, store storage.Queryable, expr string, at time.Time) promql.Vector {
	t.Helper()
	q, err := promqltest.NewTestEngine(t, false, 0, promqltest.DefaultMaxSamplesPerQuery).NewInstantQuery(t.Context(), store, nil, expr, at)
	if err != nil {
		t.Fatalf("%s: %v", expr, err)
	}
	found, err := q.Exec(t.Context()).Vector()
	if err != nil {
		t.Fatalf("%s: %v", expr, err)
	}
	return found
}

func (b board) asks() []ask {
	var all []ask
	for _, a := range b.Annotations.List {
		all = append(all, ask{name: b.UID + ": annotation " + a.Name, expr: a.Expr})
	}
	var add func([]boardPanel)
	add = func(panels []boardPanel) {
		for _, p := range panels {
			for _, target := range p.Targets {
				all = append(all, ask{fmt.Sprintf("%s: %s: %s", b.UID, p.Title, target.RefID), target.Expr, target.Instant})
			}
			add(p.Panels)
		}
	}
	add(b.Panels)
	return all
}

// expanded puts values in the place of variables, as Grafana does.
func expanded(expr string, values map[string]string) string {
	return regexp.MustCompile(`\$\w+`).ReplaceAllStringFunc(expr, func(name string) string {
		if v, ok := values[name[1:]]; ok {
			return v
		}
		return name
	})
}

// grafana are the variables that Grafana itself sets, for a range of some
// minutes and a scrape each second.
func grafana() map[string]string {
	return map[string]string{"__range": "10m", "__range_s": "600", "__interval": "5s", "__rate_interval": "20s"}
}

// choices returns every way to set the variables that take one value, in the
// order of the dashboard; those that take several have all.
func (b board) choices(t *testing.T, p prom) []map[string]string {
	t.Helper()
	ways := []map[string]string{grafana()}
	for _, c := range b.Templating.List {
		if c.Type != "query" {
			continue
		}
		var next []map[string]string
		for _, way := range ways {
			values := p.values(t, c, way)
			if c.AllValue != "" {
				values = []string{c.AllValue}
			} else if c.Multi {
				values = []string{"(" + strings.Join(values, "|") + ")"}
			} else if len(values) == 0 {
				values = []string{""}
			}
			for _, v := range values {
				with := map[string]string{c.Name: v}
				for k, v := range way {
					with[k] = v
				}
				next = append(next, with)
			}
		}
		ways = next
	}
	return ways
}
