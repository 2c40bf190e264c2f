package main

import (
	"fmt"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/cog/variants"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
)

// kind is what a panel is drawn as, in Grafana's name.
type kind string

const (
	number   kind = "stat"
	lines    kind = "timeseries"
	bars     kind = "bars" // drawn by timeseries: what happened within each step
	listing  kind = "table"
	timeline kind = "state-timeline"
)

// panel is the description of a panel.
type panel struct {
	kind          kind
	title, about  string // about: what it means and what is bad
	unit          string // Grafana's id of it; none if empty
	empty         string // text without data, with the possible reason
	width, height uint32 // of 24; in lines of 30 pixels
	queries       []query
	columns       []column // of a listing
	key           string   // labels that join its queries, unless all have the same
	complete      string   // letters of the queries that have a row wherever the first has
	scale         scale
	states        []state // words and colours for values
	min, max      *float64
	decimals      *float64
	stacked       bool
	limitLine     bool    // draw the steps of the scale
	dashed        string  // regular expression of series that are limits
	words         bool    // of a number: show the legend in place of the value
	both          bool    // of a number: show the legend beside the value
	colours       []state // fixed colours of series by name (value)
	link          *jump
}

// jump is the target of a click on a value; values of the series or row are in
// the address as ${__field.labels.x} or ${__data.fields.x}.
type jump struct{ title, url string }

func (j jump) property() dashboard.DynamicConfigValue {
	return property("links", []map[string]string{{"title": j.title, "url": j.url}})
}

func (p panel) model(id uint32, at dashboard.GridPos) dashboard.Panel {
	m := dashboard.Panel{
		Type: string(p.kind), Id: &id, Title: &p.title, Description: &p.about,
		Datasource: &source, GridPos: &at, Targets: p.targets(),
		FieldConfig: &dashboard.FieldConfigSource{Defaults: p.defaults(), Overrides: p.overrides()},
		Options:     p.options(), Transformations: p.transformations(),
	}
	if p.kind == bars {
		// A single event is one bar, not several that overlap.
		m.Type, m.Interval = string(lines), cog.ToPtr("1m")
	}
	return m
}

// atOnce reports whether the panel shows the present and not a course.
func (p panel) atOnce() bool { return p.kind == number || p.kind == listing }

func (p panel) targets() []variants.Dataquery {
	var out []variants.Dataquery
	for i, q := range p.queries {
		if p.kind == listing && i > 0 && !strings.Contains(p.complete, refID(i)) {
			// Grafana joins the answers only if each has rows, so none is empty.
			q.expr += " or " + p.noValues()
		}
		t := prometheus.Dataquery{Expr: q.expr, RefId: cog.ToPtr(refID(i))}
		if !p.atOnce() || strings.Contains(q.expr, "interval") {
			t.Interval = cog.ToPtr("$scrape")
		}
		if q.legend != "" {
			t.LegendFormat = cog.ToPtr(q.legend)
		}
		if p.atOnce() {
			t.Instant = cog.ToPtr(true)
		} else {
			t.Range = cog.ToPtr(true)
		}
		if p.kind == listing {
			t.Format = cog.ToPtr(prometheus.PromQueryFormatTable)
		}
		out = append(out, t)
	}
	return out
}

// noValues is NaN for each row of the first query, with the labels that join the others.
func (p panel) noValues() string {
	if p.key == "" {
		return "NaN * (" + p.queries[0].expr + ")"
	}
	return "on (" + p.key + ") NaN * max by (" + p.key + ") (" + p.queries[0].expr + ")"
}

// refID names the queries of a panel A, B, and so on.
func refID(i int) string { return fmt.Sprintf("%c", 'A'+i) }

func (p panel) defaults() dashboard.FieldConfig {
	unit := p.unit
	if unit == "" {
		unit = "none"
	}
	c := dashboard.FieldConfig{
		Unit: &unit, NoValue: &p.empty, Min: p.min, Max: p.max, Decimals: p.decimals,
		Mappings: mappings(p.states), Custom: p.custom(),
	}
	switch p.kind {
	case number:
		c.Thresholds = p.scale.model()
		c.Color = &dashboard.FieldColor{Mode: dashboard.FieldColorModeIdThresholds}
		c.Mappings = append(c.Mappings, unmeasured(p.empty))
	case listing:
		c.Min, c.Max = f(0), f(1) // of gauges
		c.Thresholds = only(none).model()
		c.Color = &dashboard.FieldColor{Mode: dashboard.FieldColorModeIdThresholds}
	case bars, lines:
		if p.kind == bars {
			c.Decimals = f(0)
		}
		if p.limitLine {
			c.Thresholds = p.scale.model()
		}
		c.Color = &dashboard.FieldColor{Mode: dashboard.FieldColorModeIdPaletteClassic}
		if named := !manySeries(p.queries); named && len(p.queries) == 1 {
			c.Color = &dashboard.FieldColor{Mode: dashboard.FieldColorModeIdFixed, FixedColor: cog.ToPtr(palette[0])}
		}
	case timeline:
		// By thresholds, Grafana would merge values to ranges and drop their words.
		c.Color = &dashboard.FieldColor{Mode: dashboard.FieldColorModeIdPaletteClassic}
	}
	return c
}

func (p panel) overrides() []dashboard.DashboardFieldConfigSourceOverrides {
	out := []dashboard.DashboardFieldConfigSourceOverrides{}
	if p.kind == listing {
		out = p.columnOverrides()
	}
	if p.kind == lines || p.kind == bars {
		out = append(out, nameColours(p.queries)...)
	}
	for _, c := range p.colours {
		out = append(out, byName(c.value, coloured(c.colour)))
	}
	if p.dashed != "" {
		out = append(out, override("byRegexp", "/"+p.dashed+"/",
			property("custom.lineStyle", map[string]any{"fill": "dash", "dash": []int{8, 8}}),
			property("custom.fillOpacity", 0),
			property("custom.stacking", map[string]any{"mode": "none", "group": "limits"})))
	}
	if p.link != nil {
		out = append(out, override("byType", "number", p.link.property()))
	}
	return out
}

func property(id string, value any) dashboard.DynamicConfigValue {
	return dashboard.DynamicConfigValue{Id: id, Value: value}
}

func byName(name string, properties ...dashboard.DynamicConfigValue) dashboard.DashboardFieldConfigSourceOverrides {
	return override("byName", name, properties...)
}

func override(matcher, what string, properties ...dashboard.DynamicConfigValue) dashboard.DashboardFieldConfigSourceOverrides {
	return dashboard.DashboardFieldConfigSourceOverrides{
		Matcher: dashboard.MatcherConfig{Id: matcher, Options: what}, Properties: properties,
	}
}

// tiles places up to eight numbers in one line, the first ones wider where 24 is no
// multiple.
func tiles(all ...panel) []panel {
	for i := range all {
		width := gridWidth / len(all)
		if i < gridWidth%len(all) {
			width++
		}
		all[i].kind = number
		all[i] = all[i].sized(uint32(width), 4)
	}
	return all
}

// Sizes that panels have.
func third(p panel) panel { return p.sized(8, 8) }
func half(p panel) panel  { return p.sized(12, 8) }
func whole(p panel) panel { return p.sized(24, 9) }

func (p panel) sized(width, height uint32) panel {
	p.width, p.height = width, height
	return p
}

// f is a number that may be absent.
func f(x float64) *float64 { return &x }
