package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// column is one column of a listing: a label of its queries, or the value of
// one of them, named by its letter.
type column struct {
	of, title string
	unit      string
	width     int
	scale     *scale
	states    []state
	jump      *jump
	sort      bool   // by this column, the greatest first
	sortUp    bool   // by this column, the least first
	wrapped   bool   // onto two lines
	hidden    bool   // not shown, and there for addresses
	gauge     bool   // a bar from 0 to 1
	course    bool   // a line of the time range; its query has the labels scope, host and device
	blank     string // text of a cell without a value
}

// matrix spreads one label over columns and another over rows.
type matrix struct{ row, column string }

// noCell is the content of a cell without a value; the text of the panel is for a
// listing without rows.
const noCell = "–"

// asText keeps an identity of digits from being shown as a number.
var asText = property("unit", "string")

// unmeasured keeps what was not measured from the colour of a low value.
func (c column) unmeasured() dashboard.ValueMapping { return unmeasured(cmp.Or(c.blank, noCell)) }

const wholeCell = "color-background"

// wide is the column with another width.
func (c column) wide(width int) column {
	c.width = width
	return c
}

func (c column) override() dashboard.DashboardFieldConfigSourceOverrides {
	all := []dashboard.DynamicConfigValue{property("noValue", cmp.Or(c.blank, noCell))}
	if len(c.of) > 1 {
		// A label may be in the address of a link, where a dash would be a name.
		all = []dashboard.DynamicConfigValue{property("noValue", ""), asText}
	}
	if c.wrapped {
		all = append(all, property("custom.cellOptions", map[string]any{"type": "color-text", "wrapText": true}), property("custom.wrapText", true))
	}
	if c.unit != "" {
		all = append(all, property("unit", c.unit))
	}
	if c.width != 0 {
		all = append(all, property("custom.width", c.width))
	}
	if c.scale != nil {
		all = append(all, property("thresholds", c.scale.model()), property("mappings", []dashboard.ValueMapping{c.unmeasured()}))
	}
	if c.states != nil {
		all = append(all, property("thresholds", only(none).model()), property("mappings", append(mappings(c.states), c.unmeasured())))
	}
	if c.scale != nil || c.states != nil {
		all = append(all, property("custom.cellOptions", map[string]any{"type": wholeCell, "mode": "basic"}))
	}
	if c.gauge {
		all = append(all, property("min", 0), property("max", 1), coloured(blue),
			property("custom.cellOptions", map[string]any{"type": "gauge", "mode": "basic", "valueDisplayMode": "text"}))
	}
	if c.course {
		// The number would be missing where it is 0.
		all = append(all, coloured(blue), property("custom.cellOptions", map[string]any{"type": "sparkline", "hideValue": true}))
	}
	if c.hidden {
		// Two spellings: Grafana's table has had both.
		all = append(all, property("custom.hidden", true),
			property("custom.hideFrom", map[string]any{"viz": true, "legend": false, "tooltip": false}))
	}
	if c.jump != nil {
		all = append(all, property("links", []dashboard.DashboardLink{c.jump.model()}))
	}
	return byName(c.title, all...)
}

// field is the column's name in the answer of the data source.
func (p panel) field(c column) string {
	if len(c.of) != 1 {
		return c.of
	}
	if c.course {
		return "Trend #" + c.of
	}
	if len(p.queries) == 1 {
		return "Value"
	}
	return "Value #" + c.of
}

// transformations join the queries of a listing row by row, drop the time and
// what no column shows, and give the columns their order and titles.
func (p panel) transformations() []dashboard.DataTransformerConfig {
	if p.kind == timeline {
		// This drops answers without a series, which Grafana would show as an error in
		// place of the text for no data.
		return []dashboard.DataTransformerConfig{{Id: "filterFieldsByName", Options: map[string]any{"include": map[string]any{"pattern": "/.*/"}}}}
	}
	if p.kind != listing {
		return nil
	}
	if p.matrix != nil {
		return []dashboard.DataTransformerConfig{{Id: "groupingToMatrix", Options: map[string]any{
			"rowField": p.matrix.row, "columnField": p.matrix.column, "valueField": "Value", "emptyValue": "empty",
		}}}
	}
	// Grouping drops the time, what no column shows, and answers without a row, of
	// which the table would show the header in place of the text for no data.
	group, order, titles := map[string]any{}, map[string]any{}, map[string]any{}
	for i, c := range p.allColumns() {
		field, how := p.field(c), map[string]any{"operation": "groupby", "aggregations": []string{}}
		if len(c.of) == 1 {
			how = map[string]any{"operation": "aggregate", "aggregations": []string{c.worst()}}
		}
		group[field] = how
		for _, calc := range how["aggregations"].([]string) {
			field += " (" + calc + ")"
		}
		order[field], titles[field] = i, c.title
	}
	var joined []dashboard.DataTransformerConfig
	var courses []string
	for _, c := range p.columns {
		if c.course {
			courses = append(courses, c.of)
		}
	}
	if len(courses) > 0 {
		// Only of these: an answer of one row would be taken for a line too.
		joined = append(joined, dashboard.DataTransformerConfig{
			Id: "timeSeriesTable", Options: map[string]any{},
			Filter: &dashboard.MatcherConfig{Id: "byRefId", Options: "/^(" + strings.Join(courses, "|") + ")$/"},
		})
	}
	return append(
		joined,
		dashboard.DataTransformerConfig{Id: "merge", Options: map[string]any{}},
		dashboard.DataTransformerConfig{Id: "groupBy", Options: map[string]any{"fields": group}},
		dashboard.DataTransformerConfig{Id: "organize", Options: map[string]any{"excludeByName": map[string]any{}, "indexByName": order, "renameByName": titles}},
	)
}

// worst is how the values of rows that become one are reduced.
func (c column) worst() string {
	if c.course {
		return "lastNotNull"
	}
	if c.sortUp {
		return "min"
	}
	return "max"
}

// linked are the columns that links read.
var linked = []column{scopeColumn, {of: "host", title: "Node", hidden: true}, {of: "device", title: "Id", hidden: true}, {of: "namespace", title: "Namespace", hidden: true}}

// allColumns is the columns of a listing, and hidden ones for what their links
// need.
func (p panel) allColumns() []column {
	all := p.columns
	if i := slices.IndexFunc(all, func(c column) bool { return c.title == nodeColumn.title && !c.hidden }); i >= 0 && !slices.ContainsFunc(all, func(c column) bool { return c.title == clusterColumn.title }) {
		all = slices.Insert(slices.Clone(all), i, clusterColumn)
	}
	for _, l := range linked {
		needed := false
		for _, c := range p.columns {
			needed = needed || c.jump != nil && strings.Contains(c.jump.url, cell(l.title))
		}
		if needed && !slices.ContainsFunc(all, func(c column) bool { return c.title == l.title }) {
			all = append(slices.Clip(all), l)
		}
	}
	return all
}

func (p panel) sortedBy() []common.TableSortByFieldState {
	var by, names []common.TableSortByFieldState
	for _, c := range p.columns {
		key := common.TableSortByFieldState{DisplayName: c.title, Desc: cog.ToPtr(c.sort)}
		if c.sort || c.sortUp {
			by = append(by, key)
		} else if !c.hidden {
			names = append(names, key)
		}
	}
	return append(by, names[:min(2, len(names))]...)
}

// Jumps to the other dashboards with what a row or series names.
// The cluster is that of the choice, unless it is among the variables.
func jumpTo(uid, title string, variables ...string) *jump {
	url := "/d/" + uid + "?${datasource:queryparam}&${__url_time_range}"
	if !slices.Contains(variables, "cluster") {
		url += "&${cluster:queryparam}"
	}
	for i := 0; i+1 < len(variables); i += 2 {
		if strings.HasSuffix(variables[i+1], ":queryparam}") {
			url += "&" + variables[i+1] // which has the name, and all values
			continue
		}
		url += "&var-" + variables[i] + "=" + variables[i+1]
	}
	return &jump{title, url}
}

// cell is the text of the row's column, for an address.
func cell(title string) string { return "${__data.fields." + title + ":percentencode}" }

func toNode() *jump {
	return jumpTo("accel-node", "This node", "cluster", cell("Scope"), "node", cell("Node"))
}

func toDevice() *jump {
	return jumpTo("accel-device", "This device", "cluster", cell("Scope"), "node", cell("Node"), "device", cell("Id"))
}

func toNamespace() *jump {
	return jumpTo("accel-workload", "This namespace", "cluster", cell("Scope"), "namespace", cell("Namespace"))
}

func toPod() *jump {
	return jumpTo("accel-workload", "This pod", "cluster", cell("Scope"), "namespace", cell("Namespace"), "pod", "${__value.raw:percentencode}")
}

// toHealth is the explanation of reasons and actions.
func toHealth(heading string) *jump { return &jump{"Explanation", handbook + "health.md#" + heading} }

func toRunbook() *jump {
	return &jump{"Runbook", handbook + "runbooks/${__value.raw}.md"}
}

// Columns that most listings have. Their queries give the labels host, name
// and device.
var (
	clusterColumn   = column{of: "cluster", title: "Cluster", width: 80}
	scopeColumn     = column{of: "scope", title: "Scope", hidden: true}
	nodeColumn      = column{of: "host", title: "Node", jump: toNode()}
	nameColumn      = column{of: "name", title: "Device", jump: toDevice()}
	idColumn        = column{of: "device", title: "Id", hidden: true}
	namespaceColumn = column{of: "namespace", title: "Namespace", jump: toNamespace()}
	podColumn       = column{of: "pod", title: "Pod", jump: toPod()}
	reasonColumn    = column{of: "reason", title: "Reason", jump: toHealth("catalogue")}
)

// keep leaves only the labels, and those that name the cluster.
func keep(expr string, labels string) string {
	return scoped("max by (cluster, " + labels + ") (" + expr + ")")
}

// scoped adds the label scope: the cluster, or what Grafana calls all where there is
// none. Unlike cluster it is never empty, so that a link can have it.
func scoped(expr string) string {
	return fmt.Sprintf(`label_replace(label_replace(%s, "scope", "$$__all", "", ""), "scope", "$1", "cluster", "(.+)")`, expr)
}
