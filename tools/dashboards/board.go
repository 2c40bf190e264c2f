package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
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
	d := dashboard.NewDashboard()
	d.Uid, d.Title, d.Description = &b.uid, &b.title, &b.about
	d.Tags, d.Links, d.Panels = []string{tag}, b.links(), layout(b.rows)
	d.Time, d.Refresh = &dashboard.DashboardDashboardTime{From: b.from, To: "now"}, cog.ToPtr("1m")
	d.GraphTooltip = cog.ToPtr(dashboard.DashboardCursorSyncCrosshair)
	for _, v := range append(slices.Clip(b.variables), scrape) {
		d.Templating.List = append(d.Templating.List, v.model())
	}
	for _, e := range b.events {
		d.Annotations.List = append(d.Annotations.List, e.model())
	}
	data, err := json.Marshal(d)
	if err != nil {
		return nil, err
	}
	var whole any
	if err := json.Unmarshal(data, &whole); err != nil {
		return nil, err
	}
	data, err = indented(whole, "")
	return append(data, '\n'), err
}

// links returns a link back to Fleet and to the other dashboards, which keep the time
// range and the variables.
func (b board) links() []dashboard.DashboardLink {
	var all []dashboard.DashboardLink
	if b.uid != "accel-fleet" {
		all = append(all, dashboard.DashboardLink{Title: "Fleet", Type: dashboard.DashboardLinkTypeLink, Url: cog.ToPtr("/d/accel-fleet"), Tags: []string{}, IncludeVars: true, KeepTime: true, Icon: "arrow-left"})
	}
	return append(all, dashboard.DashboardLink{Title: "Accelerators", Type: dashboard.DashboardLinkTypeDashboards, Tags: []string{tag}, AsDropdown: true, IncludeVars: true, KeepTime: true, Icon: "external link"})
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

// lineWidth is the longest line of JSON that has a whole object or list.
const lineWidth = 160

// indented is v as JSON whose objects and lists are on one line where that fits, so
// that diffs are readable.
func indented(v any, margin string) ([]byte, error) {
	line, err := json.Marshal(v)
	if err != nil || len(margin)+len(line) <= lineWidth {
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

// event is an annotation on all timelines of a dashboard.
type event struct {
	name, expr        string
	title, text, tags string // of one mark: labels as {{label}}; tags are names of labels
	colour            string
	valueIsTime       bool // in milliseconds since the epoch
	off               bool // off until enabled by the user
}

func (e event) model() dashboard.AnnotationQuery {
	return dashboard.AnnotationQuery{
		Name: e.name, Enable: !e.off, IconColor: e.colour, Datasource: &source,
		TitleFormat: &e.title, TextFormat: &e.text, TagKeys: &e.tags, UseValueForTime: &e.valueIsTime,
		Target: prometheus.Dataquery{Expr: e.expr, RefId: cog.ToPtr(e.name), Range: cog.ToPtr(true), Interval: cog.ToPtr("60s")},
	}
}

// alerts marks the start of each alert with the selector that the join leaves. The time
// for which each one fires would cover the chart, and several would hide its lines.
func alerts(selector, join string) event {
	return event{
		name: "Alerts", colour: red,
		expr:  firing(selector) + " unless " + firing(selector) + " offset 1m" + join,
		title: "{{alertname}}", text: "{{cluster}} {{node}} {{device}} {{namespace}} {{workload}}", tags: "severity",
	}
}

// xids marks each Xid at its last time.
func xids(selector string) event {
	return event{
		name: "Xids", colour: orange, valueIsTime: true,
		expr:  `accel_gpu_xid_last_timestamp_seconds{` + selector + `} * 1000`,
		title: "Xid {{xid}}", text: "{{device}} {{partition}}",
	}
}

// holds marks when a device is allocated to a pod and when it is released; off until
// somebody looks for it.
func holds(selector string) []event {
	const sameHold = " unless on (" + target + ", device, namespace, pod) "
	held := `accel_allocation_info{` + selector + `}`
	before := held + " offset 1m"
	known := ` and on (` + target + `) accel_podmap_state{state="fresh"} offset 1m == 1`
	return []event{
		{name: "Pods begin", colour: blue, off: true, expr: held + sameHold + before + known, title: "{{namespace}}/{{pod}} begins", text: "{{device}}", tags: "resource"},
		{name: "Pods end", colour: purple, off: true, expr: before + sameHold + held, title: "{{namespace}}/{{pod}} ends", text: "{{device}}", tags: "resource"},
	}
}
