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
	blank     string // text of a cell without a value
}

const (
	// noCell is the content of a cell without a value; the text of the panel is for a
	// listing without rows.
	noCell = "–"
	// leastWidth of a column without a width, in pixels.
	leastWidth = 80
)

// wide is the column with another width.
func (c column) wide(width int) column {
	c.width = width
	return c
}

// columnOverrides are, for all columns, what an empty cell shows, and then the
// properties of each.
func (p panel) columnOverrides() []dashboard.DashboardFieldConfigSourceOverrides {
	out := []dashboard.DashboardFieldConfigSourceOverrides{
		// A value that was not measured never has the colour of 0.
		override("byType", "number", property("noValue", noCell), property("mappings", []dashboard.ValueMapping{unmeasured(noCell)})),
		// A label may be in the address of a link, where a dash would be a name, and an
		// identity of digits is no number.
		override("byType", "string", property("noValue", ""), property("unit", "string")),
	}
	var hidden []string
	for _, c := range p.allColumns() {
		if c.hidden {
			hidden = append(hidden, c.title)
		} else if properties := c.properties(); len(properties) > 0 {
			out = append(out, byName(c.title, properties...))
		}
	}
	if len(hidden) > 0 {
		// Two spellings: Grafana's table has had both.
		out = append(out, override("byRegexp", "/^("+strings.Join(hidden, "|")+")$/", property("custom.hidden", true), property("custom.hideFrom", map[string]any{"viz": true})))
	}
	return out
}

func (c column) properties() []dashboard.DynamicConfigValue {
	var all []dashboard.DynamicConfigValue
	add := func(id string, value any) { all = append(all, property(id, value)) }
	if c.unit != "" {
		add("unit", c.unit)
	}
	if c.width != 0 {
		add("custom.width", c.width)
	}
	if c.scale != nil {
		add("thresholds", c.scale.model())
	}
	if c.states != nil || c.blank != "" {
		add("mappings", append(mappings(c.states), unmeasured(cmp.Or(c.blank, noCell))))
	}
	switch {
	case c.scale != nil || c.states != nil:
		add("custom.cellOptions", map[string]any{"type": "color-background", "mode": "basic"})
	case c.wrapped:
		// Two spellings: Grafana's table has had both.
		add("custom.wrapText", true)
		add("custom.cellOptions", map[string]any{"type": "auto", "wrapText": true})
	case c.gauge:
		all = append(all, coloured(blue))
		add("custom.cellOptions", map[string]any{"type": "gauge", "mode": "basic", "valueDisplayMode": "text"})
	}
	if c.jump != nil {
		all = append(all, c.jump.property())
	}
	return all
}

// field is the column's name in the answer of the data source.
func (p panel) field(c column) string {
	switch {
	case len(c.of) != 1:
		return c.of
	case len(p.queries) == 1:
		return "Value"
	}
	return "Value #" + c.of
}

// transformations join the queries of a listing row by row and give the columns their
// order and titles. Grouping drops the time and answers without a row, of which Grafana
// would show the header, or an error, in place of the text for no data.
func (p panel) transformations() []dashboard.DataTransformerConfig {
	if p.kind == timeline {
		return []dashboard.DataTransformerConfig{{Id: "filterFieldsByName", Options: map[string]any{"include": map[string]any{"pattern": "/.*/"}}}}
	}
	if p.kind != listing {
		return nil
	}
	group, order, titles := map[string]any{}, map[string]any{}, map[string]any{}
	times := []any{}
	for i, c := range p.allColumns() {
		field := p.field(c)
		if len(c.of) == 1 {
			group[field] = map[string]any{"operation": "aggregate", "aggregations": []string{"max"}}
			field += " (max)"
		} else {
			group[field] = map[string]any{"operation": "groupby"}
			if strings.HasPrefix(c.unit, "dateTime") {
				times = append(times, map[string]any{"targetField": c.title, "destinationType": "time"})
			}
		}
		order[field], titles[field] = i, c.title
	}
	all := []dashboard.DataTransformerConfig{
		{Id: "merge", Options: map[string]any{}},
		{Id: "groupBy", Options: map[string]any{"fields": group}},
		{Id: "organize", Options: map[string]any{"indexByName": order, "renameByName": titles}},
	}
	if len(times) > 0 {
		all = append(all, dashboard.DataTransformerConfig{Id: "convertFieldType", Options: map[string]any{"conversions": times}})
	}
	return all
}

// linked are the columns that links read.
var linked = []column{
	scopeColumn,
	{of: "host", title: "Node", hidden: true},
	{of: "device", title: "Id", hidden: true},
	{of: "board", title: "Board", hidden: true},
	{of: "namespace", title: "Namespace", hidden: true},
}

// allColumns is the columns of a listing, and hidden ones for what their links need.
func (p panel) allColumns() []column {
	all := slices.Clone(p.columns)
	if i := slices.IndexFunc(all, func(c column) bool { return c.of == "host" || c.of == "namespace" }); i >= 0 && !slices.ContainsFunc(all, func(c column) bool { return c.of == "cluster" }) {
		all = slices.Insert(all, i, clusterColumn)
	}
	for _, l := range linked {
		needed := false
		for _, c := range p.columns {
			needed = needed || c.jump != nil && strings.Contains(c.jump.url, cell(l.title))
		}
		if needed && !slices.ContainsFunc(all, func(c column) bool { return c.title == l.title }) {
			all = append(all, l)
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

// jumpTo is a link to another dashboard with what a row or series names. The cluster is
// that of the choice, unless it is among the variables.
func jumpTo(uid, title string, variables ...string) *jump {
	url := "/d/" + uid + "?${datasource:queryparam}&${__url_time_range}"
	if !slices.Contains(variables, "cluster") {
		url += "&${cluster:queryparam}"
	}
	for i := 0; i+1 < len(variables); i += 2 {
		url += "&var-" + variables[i] + "=" + variables[i+1]
	}
	return &jump{title, url}
}

// cell is the text of the row's column, for an address.
func cell(title string) string { return "${__data.fields." + title + ":percentencode}" }

func toNode() *jump {
	return jumpTo("accel-node", "This node", "cluster", cell("Scope"), "node", cell("Node"))
}

// toDevice leads to the dashboard of the kind of device.
func toDevice() *jump {
	return jumpTo(cell("Board"), "This device", "cluster", cell("Scope"), "node", cell("Node"), "device", cell("Id"))
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

// Columns that most listings have. Their queries give the labels host, name, board
// and device.
var (
	clusterColumn   = column{of: "cluster", title: "Cluster", width: 70}
	scopeColumn     = column{of: "scope", title: "Scope", hidden: true}
	poolColumn      = column{of: "pool", title: "Pool", width: 90}
	nodeColumn      = column{of: "host", title: "Node", jump: toNode()}
	nameColumn      = column{of: "name", title: "Device", jump: toDevice()}
	namespaceColumn = column{of: "namespace", title: "Namespace", jump: toNamespace()}
	podColumn       = column{of: "pod", title: "Pod", jump: toPod()}
	sinceColumn     = column{of: "A", title: "Since", unit: "dateTimeFromNow", width: 150}
)

// rowLabels are the labels of a row on a device that its links need.
const rowLabels = "host, name, board, device"

// keep leaves only the labels and the label cluster.
func keep(expr string, labels string) string {
	return scoped("max by (cluster, " + labels + ") (" + expr + ")")
}

// onDevices has a row for each device and the further labels.
func onDevices(selector, expr, labels string, further ...string) query {
	all := rowLabels
	for _, l := range append([]string{labels}, further...) {
		if l != "" {
			all += ", " + l
		}
	}
	return query{expr: keep(host(named(selector, expr, further...)), all)}
}

// scoped adds the label scope: the cluster, or what Grafana calls all where there is
// none. Unlike cluster it is never empty, so that a link can have it.
func scoped(expr string) string {
	return fmt.Sprintf(`label_replace(label_replace(%s, "scope", "$$__all", "", ""), "scope", "$1", "cluster", "(.+)")`, expr)
}
