package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// board is the description of a dashboard. Its uid is also the name of its file
// and never changes, because links and bookmarks contain it.
type board struct {
	uid, title, about string
	from              string // beginning of the time range, as in now-6h
	variables         []variable
	events            []event
	rows              []row
}

// row is a group of panels under a title. The panels of a folded row are not
// queried until it is opened.
type row struct {
	title  string
	folded bool
	panels []panel
}

const (
	tag      = "accel-exporter"
	handbook = "https://github.com/accel-exporter/accel-exporter/blob/main/docs/"
)

// json returns the dashboard as Grafana imports it.
func (b board) json() ([]byte, error) {
	d := dashboard.NewDashboardBuilder(b.title).
		Uid(b.uid).
		Description(b.about).
		Tags([]string{tag}).
		Time(b.from, "now").
		Refresh("1m").
		Tooltip(dashboard.DashboardCursorSyncCrosshair)
	for _, v := range append(slices.Clip(b.variables), scrape) {
		d.WithVariable(built[dashboard.VariableModel]{v.model()})
	}
	model, err := d.Build()
	if err != nil {
		return nil, err
	}
	model.Links = b.links()
	model.Panels = layout(b.rows)
	return b.finish(model)
}

// finish adds what the SDK has no fields for and indents the text so that diffs
// are readable.
func (b board) finish(model dashboard.Dashboard) ([]byte, error) {
	data, err := json.Marshal(model)
	if err != nil {
		return nil, err
	}
	var whole map[string]any
	if err := json.Unmarshal(data, &whole); err != nil {
		return nil, err
	}
	list := []any{}
	for _, e := range b.events {
		list = append(list, e.model())
	}
	whole["annotations"] = map[string]any{"list": list}
	data, err = indented(whole, "")
	return append(data, '\n'), err
}

// built is a builder of an existing value.
type built[T any] struct{ t T }

func (b built[T]) Build() (T, error) { return b.t, nil }

// links returns links back and to the other dashboards, which keep the time range and
// the variables, and to the documentation.
func (b board) links() []dashboard.DashboardLink {
	var all []dashboard.DashboardLink
	back := func(uid, title string) {
		if b.uid != uid {
			all = append(all, dashboard.DashboardLink{Title: title, Type: dashboard.DashboardLinkTypeLink, Url: cog.ToPtr("/d/" + uid), Tags: []string{}, IncludeVars: true, KeepTime: true, Icon: "arrow-left"})
		}
	}
	back("accel-fleet", "Fleet")
	if b.uid == "accel-device" {
		back("accel-node", "Node")
	}
	return append(all, []dashboard.DashboardLink{
		{Title: "Accelerators", Type: dashboard.DashboardLinkTypeDashboards, Tags: []string{tag}, AsDropdown: true, IncludeVars: true, KeepTime: true, Icon: "external link"},
		{Title: "Runbooks", Type: dashboard.DashboardLinkTypeLink, Url: cog.ToPtr(handbook + "runbooks"), Tags: []string{}, TargetBlank: true, Icon: "doc"},
		{Title: "Metrics", Type: dashboard.DashboardLinkTypeLink, Url: cog.ToPtr(handbook + "metrics.md"), Tags: []string{}, TargetBlank: true, Icon: "doc"},
	}...)
}

const gridWidth = 24

// layout numbers the panels and places them side by side.
func layout(rows []row) []dashboard.PanelOrRowPanel {
	var out []dashboard.PanelOrRowPanel
	var id, y uint32
	for _, r := range rows {
		id++
		head := dashboard.RowPanel{
			Type: "row", Id: id, Title: &r.title, Collapsed: r.folded, Panels: []dashboard.Panel{},
			GridPos: &dashboard.GridPos{X: 0, Y: y, W: gridWidth, H: 1},
		}
		y++
		var x, line uint32
		var inside []dashboard.Panel
		for _, p := range r.panels {
			if x+p.width > gridWidth {
				x, y, line = 0, y+line, 0
			}
			id++
			inside = append(inside, p.model(id, dashboard.GridPos{X: x, Y: y, W: p.width, H: p.height}))
			x, line = x+p.width, max(line, p.height)
		}
		y += line
		if r.folded {
			head.Panels = inside
		}
		out = append(out, dashboard.PanelOrRowPanel{RowPanel: &head})
		for i := range inside {
			if !r.folded {
				out = append(out, dashboard.PanelOrRowPanel{Panel: &inside[i]})
			}
		}
	}
	return out
}

// indented is v as JSON whose objects and lists are on one line where that fits.
func indented(v any, margin string) ([]byte, error) {
	line, err := json.Marshal(v)
	if err != nil || len(margin)+len(line) <= 120 {
		return line, err
	}
	var parts [][]byte
	add := func(key string, value any) {
		part, e := indented(value, margin+"  ")
		if err == nil {
			err = e
		}
		parts = append(parts, append([]byte("\n  "+margin+key), part...))
	}
	open, end := "[", "]"
	switch v := v.(type) {
	case map[string]any:
		open, end = "{", "}"
		for _, k := range slices.Sorted(maps.Keys(v)) {
			name, e := json.Marshal(k)
			if e != nil {
				return nil, e
			}
			add(string(name)+": ", v[k])
		}
	case []any:
		for _, e := range v {
			add("", e)
		}
	default:
		return line, nil
	}
	return slices.Concat([]byte(open), bytes.Join(parts, []byte(",")), []byte("\n"+margin+end)), err
}
