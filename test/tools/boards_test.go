package tools

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/util/teststorage"
)

// board is what of a dashboard asks the data source.
type board struct {
	UID        string
	Templating struct {
		List []struct {
			Name, Type, Regex, AllValue string
			Multi                       bool
			Query                       json.RawMessage
		}
	}
	Panels      []boardPanel
	Annotations struct {
		List []struct {
			Name   string
			Target boardTarget
		}
	}
}

type boardPanel struct {
	Type, Title string
	Targets     []boardTarget
	Panels      []boardPanel
}

type boardTarget struct {
	RefID              string `json:"refId"`
	Expr, LegendFormat string
	Instant            bool
}

func loadBoards(t *testing.T) map[string]board {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(root, "dashboards/*.json"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("%d dashboards, %v", len(paths), err)
	}
	all := map[string]board{}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var b board
		if err := json.Unmarshal(data, &b); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		for _, p := range b.Panels {
			b.Panels = append(b.Panels, p.Panels...)
		}
		all[b.UID] = b
	}
	return all
}

// boardPages are the golden pages of the nodes of two clusters, whose nodes and pods have
// the same names. The first page that has a series counts.
var boardPages = map[string][]string{
	"n1":      {"h100-8.pods.metrics", "h100-8.metrics"},
	"n2":      {"mixed-node.pods.metrics", "mixed-node.metrics"},
	"n3":      {"one-lost.metrics"},
	"n5":      {"mi300x-8.pods.metrics", "mi300x-8.metrics"},
	"control": {"../../../../internal/remediation/testdata/page.metrics"},
}

// boardHistory is the time before now that has samples.
const boardHistory = 20 * time.Minute

// boardWorld is a Prometheus after some minutes of scrapes.
type boardWorld struct {
	*teststorage.TestStorage
	engine   *promql.Engine
	end      time.Time
	interval time.Duration
}

// newBoardWorld scrapes the pages, in which each counter grows by one at each scrape, and
// what testdata/boards.txt adds; and evaluates the rules, or not.
func newBoardWorld(t *testing.T, interval time.Duration, withRules bool) boardWorld {
	t.Helper()
	w := boardWorld{teststorage.New(t), promqltest.NewTestEngine(t, false, 0, 50_000_000), time.Unix(0, 0).Add(boardHistory), interval}
	n := int(boardHistory / interval)
	app := w.Appender(t.Context())
	replaced := map[string]bool{}
	add := func(node, series, values string, clusters ...string) {
		metric, samples, err := parser.ParseSeriesDesc(series + " " + values)
		if err != nil {
			t.Fatalf("%s %s: %v", series, values, err)
		}
		for _, cluster := range clusters {
			b := labels.NewBuilder(metric)
			for l, v := range map[string]string{"cluster": cluster, "node": node, "instance": node, "job": "accel-exporter", "pool": "p"} {
				b.Set(l, cmp.Or(metric.Get(l), v)) // as with honor_labels
			}
			l := b.Labels()
			if replaced[l.String()] {
				continue
			}
			replaced[l.String()] = true
			for i, s := range samples {
				if s.Omitted {
					continue
				}
				if _, err := app.Append(0, l, int64(i)*interval.Milliseconds(), s.Value); err != nil {
					t.Fatalf("%s: %v", series, err)
				}
			}
		}
	}
	extra, err := os.ReadFile("testdata/boards.txt")
	if err != nil {
		t.Fatal(err)
	}
	counts := strings.NewReplacer("xALL", fmt.Sprintf("x%d", n), "xHALF", fmt.Sprintf("x%d", n/2))
	for line := range strings.Lines(string(extra)) {
		if f := regexp.MustCompile(`^(\w+) (.+?\}) (.+)\n`).FindStringSubmatch(line); f != nil {
			add(f[1], f[2], counts.Replace(f[3]), "a")
		}
	}
	for node, pages := range boardPages {
		for _, name := range []string{"up", "scrape_samples_scraped", "accel_exporter_build_info", "process_resident_memory_bytes", "process_cpu_seconds_total"} {
			add(node, name, fmt.Sprintf("1x%d", n), "a", "b")
		}
		kinds := map[string]string{}
		for _, page := range pages {
			for line := range strings.Lines(recordedPage(t, page)) {
				if f := strings.Fields(line); f[0] == "#" {
					kinds[f[2]] = f[3]
					continue
				}
				i := strings.LastIndexByte(line, ' ')
				series, v := line[:i], strings.TrimSpace(strings.Replace(line[i:], "VOLATILE", "1", 1))
				if kind := kinds[series[:strings.IndexAny(series+"{", "{")]]; kind == "counter" || kind == "" { // "" are the parts of histograms
					v += "+1"
				}
				add(node, series, fmt.Sprintf("%sx%d", v, n), "a", "b")
			}
		}
	}
	if err := app.Commit(); err != nil {
		t.Fatal(err)
	}
	if withRules {
		w.evaluateRules(t)
	}
	return w
}

func (w boardWorld) evaluateRules(t *testing.T) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "rules/*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	groups, errs := rules.NewManager(&rules.ManagerOptions{
		Context: t.Context(), Appendable: w, Queryable: w, QueryFunc: rules.EngineQueryFunc(w.engine, w), Logger: slog.New(slog.DiscardHandler), ExternalURL: &url.URL{},
		NotifyFunc: func(context.Context, string, ...*rules.Alert) {},
	}).LoadGroups(time.Minute, labels.EmptyLabels(), "", nil, false, files...)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	for at := time.Unix(0, 0).Add(5 * time.Minute); !at.After(w.end); at = at.Add(time.Minute) {
		for _, g := range groups {
			for _, r := range g.AlertingRules() {
				r.SetRestored(true)
			}
			g.Eval(t.Context(), at)
		}
	}
}

// ask returns the series of a query of the board, as Grafana puts it to Prometheus with
// the chosen values.
func (w boardWorld) ask(t *testing.T, q boardTarget, chosen map[string]string) promql.Vector {
	t.Helper()
	step := w.interval
	with := map[string]string{"__range": "10m", "__range_s": "600", "__interval": step.String(), "__rate_interval": (4 * step).String()}
	expr := regexp.MustCompile(`\$\w+`).ReplaceAllStringFunc(q.Expr, func(name string) string {
		if v, ok := chosen[name[1:]]; ok {
			return v
		}
		return cmp.Or(with[name[1:]], name)
	})
	var query promql.Query
	var err error
	if q.Instant {
		query, err = w.engine.NewInstantQuery(t.Context(), w, nil, expr, w.end)
	} else {
		query, err = w.engine.NewRangeQuery(t.Context(), w, nil, expr, w.end.Add(-17*time.Minute), w.end, step)
	}
	if err != nil {
		t.Fatalf("%s: %v", expr, err)
	}
	defer query.Close()
	result := query.Exec(t.Context())
	if result.Err != nil {
		t.Fatalf("%v: %s", result.Err, expr)
	}
	var out promql.Vector
	switch found := result.Value.(type) {
	case promql.Vector:
		out = slices.Clone(found)
	case promql.Matrix:
		for _, s := range found {
			out = append(out, promql.Sample{Metric: s.Metric, F: s.Floats[len(s.Floats)-1].F})
		}
	}
	return slices.DeleteFunc(out, func(s promql.Sample) bool { return value.IsStaleNaN(s.F) })
}

// choices returns every way to set the variables that take one value; the others have all.
func (w boardWorld) choices(t *testing.T, b board) []map[string]string {
	t.Helper()
	ways := []map[string]string{{}}
	for _, c := range b.Templating.List {
		if c.Type != "query" {
			continue
		}
		var q struct{ Query string }
		if err := json.Unmarshal(c.Query, &q); err != nil {
			t.Fatal(err)
		}
		expr, re := strings.TrimSuffix(strings.TrimPrefix(q.Query, "query_result("), ")"), c.Regex
		if m := regexp.MustCompile(`^label_values\((.+), (\w+)\)$`).FindStringSubmatch(q.Query); m != nil {
			expr, re = "group by ("+m[2]+") ("+m[1]+")", `/`+m[2]+`="([^"]+)"/`
		}
		pattern := regexp.MustCompile(strings.ReplaceAll(strings.Trim(re, "/"), "(?<", "(?P<"))
		var next []map[string]string
		for _, way := range ways {
			var values []string
			for _, s := range w.ask(t, boardTarget{Expr: expr, Instant: true}, way) {
				m := pattern.FindStringSubmatch(s.Metric.String())
				if m == nil {
					t.Fatalf("%s: variable %s: %s does not fit %v", b.UID, c.Name, re, s.Metric)
				}
				values = append(values, m[max(1, pattern.SubexpIndex("value"))])
			}
			if len(values) == 0 {
				t.Errorf("%s: variable %s offers nothing with %v", b.UID, c.Name, way)
			}
			if c.AllValue != "" {
				values = []string{c.AllValue}
			} else if c.Multi {
				values = []string{"(" + strings.Join(values, "|") + ")"}
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

// neverAnswered has the queries without data in this world, with the reason.
var neverAnswered = map[string]string{}

// TestDashboards asks a Prometheus that has scraped two clusters, with and without the rules,
// every query of every dashboard. None may fail or be empty without a reason. No number
// differs where the rules are not loaded: it is the same or absent, never another. No two
// series of a chart have one name.
func TestDashboards(t *testing.T) {
	for _, interval := range []time.Duration{15 * time.Second, time.Minute} {
		t.Run(interval.String(), func(t *testing.T) {
			full, bare := newBoardWorld(t, interval, true), newBoardWorld(t, interval, false)
			answered := map[string]bool{}
			for uid, b := range loadBoards(t) {
				for _, way := range full.choices(t, b) {
					for _, a := range b.Annotations.List {
						name := uid + ": annotation " + a.Name
						answered[name] = len(full.ask(t, a.Target, way)) > 0 || answered[name]
					}
					for _, p := range b.Panels {
						legends := map[string]labels.Labels{}
						for _, q := range p.Targets {
							name := uid + ": " + p.Title + ": " + q.RefID
							found := full.ask(t, q, way)
							answered[name] = len(found) > 0 || answered[name]
							if p.Type == "stat" {
								if without := bare.ask(t, q, way); len(without) > 0 && len(found) > 0 && without[0].F != found[0].F {
									t.Errorf("%s is %v, and %v without rules", name, found[0].F, without[0].F)
								}
							}
							for _, s := range found {
								legend := regexp.MustCompile(`\{\{(\w+)\}\}`).ReplaceAllStringFunc(q.LegendFormat, func(l string) string { return s.Metric.Get(strings.Trim(l, "{}")) })
								if other, twice := legends[legend]; twice && !q.Instant {
									t.Errorf("%s: %v and %v are both %q", name, s.Metric, other, legend)
								}
								legends[legend] = s.Metric
								if strings.Contains(p.Title, "share") && s.F > 1 {
									t.Errorf("%s: a share of %v", name, s.F)
								}
							}
						}
					}
				}
			}
			for name, ok := range answered {
				if ok == (neverAnswered[name] != "") {
					t.Errorf("%s: answered: %v, excused: %q", name, ok, neverAnswered[name])
				}
			}
		})
	}
}

// TestDashboardsTiles: a number of the first row counts the rows of the table below it, or
// what happened, without and with rules.
func TestDashboardsTiles(t *testing.T) {
	boards := loadBoards(t)
	for _, withRules := range []bool{true, false} {
		w := newBoardWorld(t, time.Minute, withRules)
		for _, c := range []struct {
			board, tile string
			want        float64
			table       string
			rows        string  // of the table that count, by their labels as text
			least       float64 // the least value of such a row
			by          string  // the labels by which equal rows count once
		}{
			{board: "accel-fleet", tile: "Failed devices", want: 4, table: "Incidents", rows: `kind="(failed|unknown)"`},
			{board: "accel-fleet", tile: "Degraded devices", want: 1, table: "Incidents", rows: `kind="(reset_due|degraded)"`},
			{board: "accel-fleet", tile: "Pods affected", want: 2},
			{board: "accel-fleet", tile: "Not approved", want: 2, table: "Nodes that are left", rows: `expected="[^u]`, by: "cluster host"},
			{board: "accel-fleet", tile: "Critical alerts", want: 7, table: "Firing alerts", rows: `severity="critical"`},
			{board: "accel-exporter", tile: "Exporters down", want: 1, table: "Exporters and sources that are silent", rows: `source="all"`},
			{board: "accel-workload", tile: "Idle now", want: 1, table: "Idle allocations"},
			{board: "accel-workload", tile: "Hit by a fault", want: 1},
			{board: "accel-workload", tile: "On devices in trouble", want: 2, table: "Devices of each pod", least: 1, by: "cluster namespace pod"},
			{board: "accel-fpga", tile: "Cards", want: 8, table: "Cards, the sickest first"},
			{board: "accel-fpga", tile: "Failed cards", want: 1, table: "Cards, the sickest first", least: 2},
		} {
			b := boards[c.board]
			first := func(title string) promql.Vector {
				i := slices.IndexFunc(b.Panels, func(p boardPanel) bool { return p.Title == title })
				if i < 0 {
					t.Fatalf("%s has no panel %s", c.board, title)
				}
				return w.ask(t, b.Panels[i].Targets[0], w.choices(t, b)[0])
			}
			tile := first(c.tile)
			if c.table == "Firing alerts" && !withRules {
				if len(tile) > 0 {
					t.Errorf("%s: %s is %v without rules", c.board, c.tile, tile)
				}
				continue
			}
			if len(tile) != 1 || tile[0].F != c.want {
				t.Errorf("%s: %s is %v, want %v", c.board, c.tile, tile, c.want)
			}
			if c.table == "" {
				continue
			}
			rows := map[string]bool{}
			for _, s := range first(c.table) {
				if regexp.MustCompile(c.rows).MatchString(s.Metric.String()) && s.F >= c.least {
					if c.by != "" {
						s.Metric = s.Metric.MatchLabels(true, strings.Fields(c.by)...)
					}
					rows[s.Metric.String()] = true
				}
			}
			if float64(len(rows)) != c.want {
				t.Errorf("%s: %s has %d rows, the number %s is %v: %v", c.board, c.table, len(rows), c.tile, c.want, rows)
			}
		}
	}
}

// TestWorkloadFaults: the faults that count as no fault of a pod have each Xid after which
// the catalogue always has a device failed, and no Xid that programs cause.
func TestWorkloadFaults(t *testing.T) {
	text := func(file string) string {
		data, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	listed := strings.Split(regexp.MustCompile(`xid_\(([0-9|]+)\)`).FindStringSubmatch(text("dashboards/accel-workload.json"))[1], "|")
	xids, _, _ := strings.Cut(text("internal/judge/health/catalogue.yaml"), "\nsxid:")
	for _, m := range regexp.MustCompile(`\{code: (\d+), name: .* fault: (\w+), severity: (\w+)`).FindAllStringSubmatch(xids, -1) {
		code, fault, severity := m[1], m[2], m[3]
		if is := slices.Contains(listed, code); severity == "failed" && fault != "setup" && !is || is && (fault == "application" || fault == "none") {
			t.Errorf("Xid %s: fault %s, severity %s, in the board: %v", code, fault, severity, is)
		}
	}
}
