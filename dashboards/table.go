package main

import (
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
	sort      bool // by this column, the greatest first
	sortUp    bool // by this column, the least first
	hidden    bool // not shown, and there for addresses
}

// matrix spreads one label over columns and another over rows.
type matrix struct{ row, column string }

// blank is the content of a cell without a value; the text of the panel is for a
// listing without rows.
var blank = property("noValue", "–")

// asText keeps an identity of digits from being shown as a number.
var asText = property("unit", "string")

// noColour keeps what was not measured from the colour of a low value.
var noColour = dashboard.ValueMapping{SpecialValueMap: &dashboard.SpecialValueMap{
	Type: dashboard.MappingTypeSpecialValue,
	Options: dashboard.DashboardSpecialValueMapOptions{
		Match:  dashboard.SpecialValueMatchNullAndNan,
		Result: dashboard.ValueMappingResult{Text: cog.ToPtr("–"), Color: cog.ToPtr(none)},
	},
}}

const wholeCell = "color-background"

func (c column) override() dashboard.DashboardFieldConfigSourceOverrides {
	all := []dashboard.DynamicConfigValue{blank}
	if len(c.of) > 1 {
		all = append(all, asText)
	}
	if c.unit != "" {
		all = append(all, property("unit", c.unit))
	}
	if c.width != 0 {
		all = append(all, property("custom.width", c.width))
	}
	if c.scale != nil {
		all = append(all, property("thresholds", c.scale.model()), property("mappings", []dashboard.ValueMapping{noColour}))
	}
	if c.states != nil {
		all = append(all, property("thresholds", only(none).model()), property("mappings", append(mappings(c.states), noColour)))
	}
	if c.scale != nil || c.states != nil {
		all = append(all, property("custom.cellOptions", map[string]any{"type": wholeCell, "mode": "basic"}))
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
	if len(p.queries) == 1 {
		return "Value"
	}
	return "Value #" + c.of
}

// transformations join the queries of a listing row by row, drop the time and
// what no column shows, and give the columns their order and titles.
func (p panel) transformations() []dashboard.DataTransformerConfig {
	if p.kind != listing {
		return nil
	}
	if p.matrix != nil {
		return []dashboard.DataTransformerConfig{{Id: "groupingToMatrix", Options: map[string]any{
			"rowField": p.matrix.row, "columnField": p.matrix.column, "valueField": "Value", "emptyValue": "empty",
		}}}
	}
	order, titles := map[string]any{}, map[string]any{}
	hidden := map[string]any{"Time": true}
	for i, c := range p.columns {
		order[p.field(c)], titles[p.field(c)] = i, c.title
	}
	for i := range p.queries {
		if f := p.field(column{of: refID(i)}); titles[f] == nil {
			hidden[f] = true
		}
	}
	return []dashboard.DataTransformerConfig{
		{Id: "merge", Options: map[string]any{}},
		{Id: "organize", Options: map[string]any{"excludeByName": hidden, "indexByName": order, "renameByName": titles}},
	}
}

func (p panel) sortedBy() []common.TableSortByFieldState {
	for _, c := range p.columns {
		if c.sort || c.sortUp {
			return []common.TableSortByFieldState{{DisplayName: c.title, Desc: cog.ToPtr(c.sort)}}
		}
	}
	return nil
}

// Jumps to the other dashboards with what a row or series names.
func jumpTo(uid, title string, variables ...string) *jump {
	url := "/d/" + uid + "?${datasource:queryparam}&${__url_time_range}"
	for i := 0; i+1 < len(variables); i += 2 {
		url += "&var-" + variables[i] + "=" + variables[i+1]
	}
	return &jump{title, url}
}

// cell is the text of the row's column, for an address.
func cell(title string) string { return "${__data.fields." + title + ":percentencode}" }

func toNode() *jump { return jumpTo("accel-node", "This node", "node", cell("Node")) }

func toDevice() *jump {
	return jumpTo("accel-device", "This device", "node", cell("Node"), "device", cell("Id"))
}

func toNamespace() *jump {
	return jumpTo("accel-workload", "This namespace", "namespace", cell("Namespace"))
}

func toRunbook() *jump {
	return &jump{"Runbook", handbook + "runbooks/${__value.raw}.md"}
}

// Columns that most listings have. Their queries give the labels host, name
// and device.
var (
	nodeColumn      = column{of: "host", title: "Node", jump: toNode()}
	nameColumn      = column{of: "name", title: "Device", jump: toDevice()}
	idColumn        = column{of: "device", title: "Id", hidden: true}
	namespaceColumn = column{of: "namespace", title: "Namespace", jump: toNamespace()}
	podColumn       = column{of: "pod", title: "Pod"}
)

// keep leaves only the labels, so that a listing has no other columns.
func keep(expr string, labels string) string { return "max by (" + labels + ") (" + expr + ")" }
