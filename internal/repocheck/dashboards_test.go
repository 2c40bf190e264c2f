package repocheck

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"

	"github.com/accel-exporter/accel-exporter/internal/remediation"
)

// grafanaBoard has the parts of a dashboard that Grafana does not check.
type grafanaBoard struct {
	UID, Title, Description string
	Panels                  []grafanaPanel
	Templating              struct {
		List []struct {
			Name, Type, Description string
			Query                   json.RawMessage
		}
	}
	Annotations struct{ List []struct{ Name, Expr string } }
	text        string
}

type grafanaPanel struct {
	ID                       int
	Type, Title, Description string
	Datasource               struct{ UID string }
	GridPos                  struct{ X, Y, W, H int }
	FieldConfig              struct {
		Defaults struct {
			Unit, NoValue string
			Max           *float64
			Color         grafanaColour
			Mappings      []grafanaMapping
			Custom        struct {
				DrawStyle   string
				AxisSoftMax *float64
				Filterable  bool
			}
			Links []struct{ URL string }
		}
		Overrides []struct {
			Matcher    struct{ ID, Options string }
			Properties []struct {
				ID    string
				Value json.RawMessage
			}
		}
	}
	Options struct {
		Sizing string
		SortBy []any
	}
	Targets []struct {
		Expr, Interval, LegendFormat string
		Datasource                   struct{ UID string }
		Range                        bool
	}
	Transformations []grafanaStep
	Panels          []grafanaPanel
}

type grafanaStep struct {
	ID      string
	Filter  struct{ ID string }
	Options struct{ RenameByName map[string]string }
}

type grafanaColour struct{ Mode, FixedColor string }

type grafanaMapping struct {
	Type    string
	Options struct{ Match string }
}

// loadBoards returns the dashboards by uid.
func loadBoards(t *testing.T) map[string]grafanaBoard {
	t.Helper()
	all := map[string]grafanaBoard{}
	for _, name := range match(t, "dashboards/*.json") {
		var b grafanaBoard
		data := read(t, name)
		if err := json.Unmarshal(data, &b); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if name != "dashboards/"+b.UID+".json" {
			t.Errorf("%s has the uid %s", name, b.UID)
		}
		b.text = string(data)
		all[b.UID] = b
	}
	return all
}

// panels returns all panels, including those of collapsed rows, without the
// rows.
func (b grafanaBoard) panels() []grafanaPanel {
	var all []grafanaPanel
	for _, p := range b.Panels {
		if p.Type != "row" {
			all = append(all, p)
		}
		all = append(all, p.Panels...)
	}
	return all
}

// exprs returns every expression with its location.
func (b grafanaBoard) exprs(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, p := range b.panels() {
		for i, q := range p.Targets {
			all[b.UID+": "+p.Title+": "+string(rune('A'+i))] = q.Expr
		}
	}
	for _, a := range b.Annotations.List {
		all[b.UID+": annotation "+a.Name] = a.Expr
	}
	for _, v := range b.Templating.List {
		if v.Type != "query" {
			continue
		}
		var q struct{ Query string }
		if err := json.Unmarshal(v.Query, &q); err != nil {
			t.Fatalf("%s: variable %s: %v", b.UID, v.Name, err)
		}
		expr := strings.TrimSuffix(strings.TrimPrefix(q.Query, "query_result("), ")")
		if m := regexp.MustCompile(`^label_values\((.+), (\w+)\)$`).FindStringSubmatch(q.Query); m != nil {
			expr = "group by (" + m[2] + ") (" + m[1] + ")"
		}
		all[b.UID+": variable "+v.Name] = expr
	}
	return all
}

// parsed returns the parsed expression with durations for Grafana's variables.
func parsed(t *testing.T, at, expr string) parser.Expr {
	t.Helper()
	// Longer names first: $__range is a prefix of $__range_s.
	for _, v := range [][2]string{{"$__rate_interval", "1m"}, {"$__interval", "1m"}, {"$__range_s", "600"}, {"$__range", "10m"}} {
		expr = strings.ReplaceAll(expr, v[0], v[1])
	}
	e, err := parser.ParseExpr(expr)
	if err != nil {
		t.Fatalf("%s: %v: %s", at, err, expr)
	}
	return e
}

// TestDashboardPanels: each panel has a description, a unit and a text for no
// data; ids and positions are unique.
func TestDashboardPanels(t *testing.T) {
	titles := map[string]bool{}
	for _, b := range loadBoards(t) {
		if m := regexp.MustCompile(`"properties": null|"list": null|"panels": null`).FindString(b.text); m != "" {
			t.Errorf("%s: %s, which Grafana rejects", b.UID, m)
		}
		if titles[b.Title] || b.Description == "" {
			t.Errorf("%s: title is there twice, or no description", b.UID)
		}
		titles[b.Title] = true
		ids := map[int]bool{}
		for _, p := range append(b.panels(), b.Panels...) {
			if p.Type == "row" {
				if ids[p.ID] {
					t.Errorf("%s: row %s: id %d is there twice", b.UID, p.Title, p.ID)
				}
				ids[p.ID] = true
			}
		}
		for _, p := range b.panels() {
			at := b.UID + ": " + p.Title
			if ids[p.ID] || p.ID == 0 {
				t.Errorf("%s: id %d is there twice", at, p.ID)
			}
			ids[p.ID] = true
			if p.Title == "" || !strings.HasSuffix(p.Description, ".") || p.FieldConfig.Defaults.Unit == "" || p.FieldConfig.Defaults.NoValue == "" {
				t.Errorf("%s: title, description as a sentence, unit or noValue is missing", at)
			}
			if p.GridPos.X+p.GridPos.W > 24 || p.GridPos.W == 0 || p.GridPos.H == 0 {
				t.Errorf("%s: it is at %v", at, p.GridPos)
			}
			if len(p.Targets) == 0 {
				t.Errorf("%s: no query", at)
			}
			for _, q := range p.Targets {
				if q.Datasource.UID != "${datasource}" || p.Datasource.UID != "${datasource}" {
					t.Errorf("%s: the data source is fixed", at)
				}
				if q.Range && q.LegendFormat == "" {
					t.Errorf("%s: a legend of raw labels: %s", at, q.Expr)
				}
			}
		}
		overlap(t, b)
	}
}

func overlap(t *testing.T, b grafanaBoard) {
	t.Helper()
	taken := map[[2]int]string{}
	for _, p := range b.Panels {
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" {
					t.Fatalf("%s: %s lies on %s", b.UID, p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
	}
}

// TestDashboardQueries: each expression parses, uses only existing series,
// labels and values, and rates use Grafana's interval.
func TestDashboardQueries(t *testing.T) {
	all := families(t)
	maps.Copy(all, map[string]family{
		"ALERTS": {}, "ALERTS_FOR_STATE": {}, "scrape_duration_seconds": {}, "scrape_samples_scraped": {},
		"process_cpu_seconds_total": {}, "process_resident_memory_bytes": {}, "accel_exporter_build_info": {},
		"accel_rules_last_evaluation_duration_seconds": {},
		"accel_rules_evaluation_failures_total":        {labels: []string{"group"}},
	})
	rate := regexp.MustCompile(`(?:rate|increase)\([^()]*\[([^\]]+)\]`)
	for _, b := range loadBoards(t) {
		for at, expr := range b.exprs(t) {
			for _, m := range rate.FindAllStringSubmatch(expr, -1) {
				if !slices.Contains([]string{"$__rate_interval", "$__range", "1h"}, m[1]) {
					t.Errorf("%s: a rate over %s", at, m[1])
				}
			}
			for _, s := range selectors(parsed(t, at, expr)) {
				if f, ok := all[s.Name]; ok && len(f.labels) == 0 {
					continue // foreign, or recorded with the labels of another series
				}
				for _, fault := range selectorFaults(all, s) {
					t.Errorf("%s: %s", at, fault)
				}
			}
		}
	}
}

// TestDashboardVariables: each used variable is defined, and each defined one
// is used.
func TestDashboardVariables(t *testing.T) {
	for _, b := range loadBoards(t) {
		used := map[string]bool{}
		for _, m := range regexp.MustCompile(`\$\{?(\w+)`).FindAllStringSubmatch(b.text, -1) {
			used[m[1]] = true
		}
		maps.DeleteFunc(used, func(name string, _ bool) bool { return strings.HasPrefix(name, "__") })
		for _, v := range b.Templating.List {
			if !used[v.Name] {
				t.Errorf("%s: nothing uses the variable %s", b.UID, v.Name)
			}
			if v.Description == "" {
				t.Errorf("%s: variable %s: no description", b.UID, v.Name)
			}
			delete(used, v.Name)
		}
		delete(used, "1") // of label_replace
		for name := range used {
			t.Errorf("%s: there is no variable %s", b.UID, name)
		}
	}
}

// TestDashboardLinks: each link is to an existing dashboard and sets variables
// that it has, or to a file of the documentation; the row has the columns that
// the link needs.
func TestDashboardLinks(t *testing.T) {
	const handbook = "https://github.com/accel-exporter/accel-exporter/blob/main/"
	boards := loadBoards(t)
	for _, b := range boards {
		for _, m := range regexp.MustCompile(`"url": "([^"]*)"`).FindAllStringSubmatch(b.text, -1) {
			var url string
			if err := json.Unmarshal([]byte(`"`+m[1]+`"`), &url); err != nil {
				t.Fatal(err)
			}
			if file, ok := strings.CutPrefix(url, handbook); ok {
				file, heading, _ := strings.Cut(file, "#")
				if heading != "" && !strings.Contains(strings.ToLower(string(read(t, file))), "\n## "+heading+"\n") {
					t.Errorf("%s: %s: no such heading", b.UID, url)
				}
				if file != "docs/runbooks/${__value.raw}.md" && file != "docs/runbooks" {
					read(t, file)
				}
				continue
			}
			uid, query, _ := strings.Cut(strings.TrimPrefix(url, "/d/"), "?")
			to, ok := boards[uid]
			if !ok {
				t.Errorf("%s: %s leads nowhere", b.UID, url)
			}
			for _, v := range regexp.MustCompile(`&(?:var-(\w+)=|\$\{(\w+):queryparam\})`).FindAllStringSubmatch(query, -1) {
				if v[1] += v[2]; !strings.Contains(to.text, `"name": "`+v[1]+`"`) {
					t.Errorf("%s: %s: %s has no such variable", b.UID, url, uid)
				}
			}
		}
		linkedFields(t, b)
	}
}

// linkedFields finds links of a table that need a missing column.
func linkedFields(t *testing.T, b grafanaBoard) {
	t.Helper()
	var raw struct{ Panels []json.RawMessage }
	if err := json.Unmarshal([]byte(b.text), &raw); err != nil {
		t.Fatal(err)
	}
	for _, data := range raw.Panels {
		var p grafanaPanel
		if err := json.Unmarshal(data, &p); err != nil {
			t.Fatal(err)
		}
		var columns []string
		for _, tr := range p.Transformations {
			columns = slices.AppendSeq(columns, maps.Values(tr.Options.RenameByName))
		}
		for _, m := range regexp.MustCompile(`__data\.fields\.(\w+)`).FindAllStringSubmatch(string(data), -1) {
			if p.Type == "table" && !slices.Contains(columns, m[1]) {
				t.Errorf("%s: %s: a link needs the column %s", b.UID, p.Title, m[1])
			}
		}
	}
}

// TestRemediationDashboard: the dashboard shows every metric of
// accel-remediator.
func TestRemediationDashboard(t *testing.T) {
	b := loadBoards(t)["accel-remediation"]
	for _, m := range remediation.Metrics() {
		if !regexp.MustCompile(`\b` + m.Name + `\b`).MatchString(b.text) {
			t.Errorf("%s is not shown", m.Name)
		}
	}
}

// TestDashboardAlerts: the dashboards show every alert of the rules.
func TestDashboardAlerts(t *testing.T) {
	b := loadBoards(t)["accel-fleet"]
	m := regexp.MustCompile(`alertname=~\\"([^"\\]+)\\"`).FindStringSubmatch(b.text)
	if m == nil {
		t.Fatal("the fleet dashboard selects no alerts")
	}
	names := regexp.MustCompile("^(?:" + m[1] + ")$")
	for _, r := range loadRules(t) {
		if r.Alert != "" && !names.MatchString(r.Alert) {
			t.Errorf("%s is not shown", r.Alert)
		}
	}
}
