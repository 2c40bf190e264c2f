package repocheck

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"
)

// grafanaBoard has the parts of a dashboard that Grafana does not check.
type grafanaBoard struct {
	UID, Title, Description string
	Panels                  []grafanaPanel
	Templating              struct {
		List []struct {
			Name, Type, Description string
			Current                 struct{ Value any }
			Query                   json.RawMessage
		}
	}
	Annotations struct {
		List []struct {
			Name   string
			Target struct{ Expr string }
		}
	}
	text string
}

type grafanaPanel struct {
	ID                       int
	Type, Title, Description string
	Datasource               struct{ UID string }
	GridPos                  struct{ X, Y, W, H int }
	FieldConfig              struct {
		Defaults struct {
			Unit, NoValue string
			Mappings      json.RawMessage
			Custom        struct {
				AxisSoftMin     float64
				ThresholdsStyle struct{ Mode string }
			}
		}
		Overrides []struct {
			Properties []struct {
				ID    string
				Value json.RawMessage
			}
		}
	}
	Options struct{ SortBy []any }
	Targets []struct {
		Expr, Interval, LegendFormat string
		Range                        bool
	}
	Transformations []struct {
		ID      string
		Options struct{ RenameByName map[string]string }
	}
	Panels []grafanaPanel
}

// loadBoards returns the dashboards by uid.
func loadBoards(t *testing.T) map[string]grafanaBoard {
	t.Helper()
	all := map[string]grafanaBoard{}
	for _, name := range match(t, "dashboards/*.json") {
		b := grafanaBoard{text: string(read(t, name))}
		if err := json.Unmarshal([]byte(b.text), &b); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if name != "dashboards/"+b.UID+".json" {
			t.Errorf("%s has the uid %s", name, b.UID)
		}
		all[b.UID] = b
	}
	return all
}

// panels returns all panels, including the panels of collapsed rows, without the
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
		all[b.UID+": annotation "+a.Name] = a.Target.Expr
	}
	for _, v := range b.Templating.List {
		var q struct{ Query string }
		if v.Type == "query" && json.Unmarshal(v.Query, &q) == nil {
			expr := strings.TrimSuffix(strings.TrimPrefix(q.Query, "query_result("), ")")
			all[b.UID+": variable "+v.Name] = regexp.MustCompile(`^label_values\((.+), (\w+)$`).ReplaceAllString(expr, "group by ($2) ($1)")
		}
	}
	return all
}

// parsed returns the parsed expression with durations for Grafana's variables.
func parsed(t *testing.T, at, expr string) parser.Expr {
	t.Helper()
	// Longer names first: $__range is a prefix of $__range_s.
	expr = strings.NewReplacer("$__rate_interval", "1m", "$__interval", "1m", "$__range_s", "600", "$__range", "10m").Replace(expr)
	e, err := parser.ParseExpr(expr)
	if err != nil {
		t.Fatalf("%s: %v: %s", at, err, expr)
	}
	return e
}

// recorded returns a name in the expression that is absent where the rules are not loaded.
func recorded(e parser.Expr) string {
	for _, s := range selectors(e) {
		if strings.Contains(s.Name, ":") || strings.HasPrefix(s.Name, "ALERTS") {
			return s.Name
		}
	}
	return ""
}

// queryFaults returns what is wrong with an expression: names that do not exist, a 0 for
// what was not recorded, and clusters that become one.
func queryFaults(all map[string]family, e parser.Expr) []string {
	var out []string
	for _, s := range selectors(e) {
		if f, ok := all[s.Name]; !ok || len(f.labels) > 0 { // others are foreign
			out = append(out, selectorFaults(all, s)...)
		}
	}
	parser.Inspect(e, func(n parser.Node, _ []parser.Node) error {
		switch n := n.(type) {
		case *parser.BinaryExpr:
			zero, ok := n.RHS.(*parser.BinaryExpr)
			if ok && n.Op == parser.LOR && zero.LHS.String() == "0" && recorded(n.LHS) != "" && recorded(zero.RHS) == "" {
				out = append(out, "0 where the rules are not loaded, by "+recorded(n.LHS))
			}
		case *parser.AggregateExpr:
			within := slices.ContainsFunc(n.Grouping, func(l string) bool {
				return slices.Contains([]string{"pool", "host", "instance", "namespace", "pod", "workload", "name"}, l)
			})
			if within && !n.Without && !slices.Contains(n.Grouping, "cluster") {
				out = append(out, fmt.Sprintf("clusters become one by %v", n.Grouping))
			}
		}
		return nil
	})
	return out
}

// panelFaults returns what a person would not understand, or read wrongly.
func (p grafanaPanel) faults() []string {
	var out []string
	fault := func(is bool, text string, args ...any) {
		if is {
			out = append(out, fmt.Sprintf(text, args...))
		}
	}
	d := p.FieldConfig.Defaults
	fault(p.ID == 0 || len(p.Targets) == 0 || p.GridPos.W == 0 || p.GridPos.X+p.GridPos.W > 24, "no id, query or place")
	fault(p.Title == "" || !strings.HasSuffix(p.Description, ".") || d.Unit == "" || d.NoValue == "", "no title, description as a sentence, unit or text without data")
	fault(p.Datasource.UID != "${datasource}", "the data source is fixed")
	fault(p.Type == "stat" && !strings.Contains(string(d.Mappings), "null+nan"), "no data has the colour of a value")
	fault(p.Type == "stat" && len(d.NoValue) > 6*p.GridPos.W, "the text without data is too long to be readable: %s", d.NoValue)
	fault(d.Custom.ThresholdsStyle.Mode != "" && d.Custom.AxisSoftMin > 0, "the axis leaves out the line of a limit")
	for _, q := range p.Targets {
		fault(q.Range && (q.Interval != "$scrape" || q.LegendFormat == ""), "no least step, or a legend of raw labels: %s", q.Expr)
		fault(regexp.MustCompile(`\bjob=~?"[^$]`).MatchString(q.Expr), "a fixed job")
	}
	columns := map[string]bool{}
	for _, s := range p.Transformations {
		for _, title := range s.Options.RenameByName {
			columns[title] = true
		}
	}
	for _, o := range p.FieldConfig.Overrides {
		for _, c := range o.Properties {
			if c.ID != "links" {
				continue
			}
			url := string(c.Value)
			fault(strings.Contains(url, `"/d/`) && !strings.Contains(url, "var-cluster=${") && !strings.Contains(url, "${cluster:queryparam}"), "a link without the cluster: %s", url)
			for _, m := range regexp.MustCompile(`__data\.fields\.(\w+)`).FindAllStringSubmatch(url, -1) {
				fault(!columns[m[1]], "a link needs the column %s", m[1])
			}
		}
	}
	fault(p.Type == "table" && len(p.Options.SortBy) == 0, "the order of its rows is random")
	return out
}

// TestDashboards: a dashboard names what exists, says what it shows and what an empty
// panel means, and shows nothing that is known to be read wrongly. test/tools asks every
// query.
func TestDashboards(t *testing.T) {
	all := families(t)
	for _, own := range []string{"ALERTS", "ALERTS_FOR_STATE", "scrape_samples_scraped", "process_cpu_seconds_total", "process_resident_memory_bytes", "accel_exporter_build_info"} {
		all[own] = family{}
	}
	all["accel_rules_evaluation_failures_total"] = family{labels: []string{"group"}}
	boards := loadBoards(t)
	for uid, b := range boards {
		for at, expr := range b.exprs(t) {
			for _, fault := range queryFaults(all, parsed(t, at, expr)) {
				// The node is in one cluster, and so is a value of a variable.
				if !strings.HasPrefix(fault, "clusters") || uid != "accel-node" && !strings.Contains(at, ": variable ") {
					t.Errorf("%s: %s", at, fault)
				}
			}
		}
		for _, p := range b.panels() {
			for _, fault := range p.faults() {
				t.Errorf("%s: %s: %s", uid, p.Title, fault)
			}
		}
		used := map[string]bool{}
		for _, m := range regexp.MustCompile(`\$\{?(\w+)`).FindAllStringSubmatch(b.text, -1) {
			used[m[1]] = m[1] != "1" && !strings.HasPrefix(m[1], "__")
		}
		for _, v := range b.Templating.List {
			if !used[v.Name] || v.Description == "" || v.Type == "datasource" && v.Current.Value != "default" {
				t.Errorf("%s: the variable %s is unused, undescribed, or no data source is the default", uid, v.Name)
			}
			delete(used, v.Name)
		}
		for name, unknown := range used {
			if unknown {
				t.Errorf("%s: there is no variable %s", uid, name)
			}
		}
		boardLinks(t, boards, b)
	}
	// Fleet lists every alert.
	names := regexp.MustCompile(`alertname=~\\"([^"\\]+)\\"`).FindStringSubmatch(boards["accel-fleet"].text)
	for _, r := range loadRules(t) {
		if r.Alert != "" && !regexp.MustCompile("^(?:"+names[1]+")$").MatchString(r.Alert) {
			t.Errorf("%s is not shown", r.Alert)
		}
	}
}

// boardLinks: each link is to a dashboard that has the variables, or to a heading of the
// documentation.
func boardLinks(t *testing.T, boards map[string]grafanaBoard, b grafanaBoard) {
	t.Helper()
	for _, m := range regexp.MustCompile(`"url": ?"((?:[^"\\]|\\.)*)"`).FindAllStringSubmatch(b.text, -1) {
		url := strings.ReplaceAll(m[1], `\u0026`, "&")
		if file, ok := strings.CutPrefix(url, "https://github.com/accel-exporter/accel-exporter/blob/main/"); ok {
			file, heading, _ := strings.Cut(strings.Replace(file, "${__value.raw}", "AcceleratorFailed", 1), "#")
			if text := strings.ToLower(string(read(t, file))); heading != "" && !strings.Contains(text, "\n## "+heading+"\n") {
				t.Errorf("%s: %s: no such heading", b.UID, url)
			}
			continue
		}
		uid, query, _ := strings.Cut(strings.TrimPrefix(url, "/d/"), "?")
		targets := []string{uid}
		if strings.HasPrefix(uid, "${") { // the dashboard of the kind of device
			targets = []string{"accel-node", "accel-fpga"}
		}
		for _, uid := range targets {
			for _, v := range regexp.MustCompile(`&(?:var-(\w+)=|\$\{(\w+):queryparam\})`).FindAllStringSubmatch(query, -1) {
				if !strings.Contains(boards[uid].text, `"name": "`+v[1]+v[2]+`"`) {
					t.Errorf("%s: %s: %s has no such variable %s", b.UID, url, uid, v[1]+v[2])
				}
			}
			if _, ok := boards[uid]; !ok {
				t.Errorf("%s: %s leads nowhere", b.UID, url)
			}
		}
	}
}
