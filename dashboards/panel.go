package main

import (
	"fmt"
	"slices"

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
	ranking  kind = "bargauge"
	timeline kind = "state-timeline"
)

// panel is the description of a panel.
type panel struct {
	kind          kind
	title, about  string // about: what it means and what is bad
	unit          string // Grafana's id of it
	empty         string // text without data, with the possible reason
	width, height uint32 // of 24; in lines of 30 pixels
	queries       []query
	columns       []column // of a listing
	matrix        *matrix  // of a listing
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
	links         []jump
}

// jump is the target of a click on a value; values of the series or row are in
// the address as ${__field.labels.x} or ${__data.fields.x}.
type jump struct{ title, url string }

func (p panel) model(id uint32, at dashboard.GridPos) dashboard.Panel {
	m := dashboard.Panel{
		Type: string(p.kind), Id: &id, Title: &p.title, Description: &p.about,
		Datasource: &source, GridPos: &at, Targets: p.targets(),
		FieldConfig: &dashboard.FieldConfigSource{Defaults: p.defaults(), Overrides: p.overrides()},
		Options:     p.options(), Transformations: p.transformations(),
	}
	if p.courses() {
		m.MaxDataPoints = cog.ToPtr(100.0) // a column has no room for more
	}
	if p.kind == bars {
		// A single event is one bar, not several that overlap.
		m.Type, m.Interval = string(lines), cog.ToPtr("1m")
	}
	return m
}

// atOnce reports whether the panel shows the present and not a course.
func (p panel) atOnce() bool { return p.kind == number || p.kind == listing || p.kind == ranking }

// courses reports whether a listing has a column of lines.
func (p panel) courses() bool {
	return slices.ContainsFunc(p.columns, func(c column) bool { return c.course })
}

func (p panel) targets() []variants.Dataquery {
	var out []variants.Dataquery
	for i, q := range p.queries {
		now := p.atOnce() && !slices.ContainsFunc(p.columns, func(c column) bool { return c.course && c.of == refID(i) })
		t := prometheus.Dataquery{
			Interval: cog.ToPtr("$scrape"),
			Expr:     q.expr, RefId: cog.ToPtr(refID(i)), Datasource: &source,
			LegendFormat: cog.ToPtr(q.legend), EditorMode: cog.ToPtr(prometheus.QueryEditorModeCode),
			Instant: cog.ToPtr(now), Range: cog.ToPtr(!now),
		}
		if p.kind == listing && now {
			t.Format = cog.ToPtr(prometheus.PromQueryFormatTable)
		}
		out = append(out, t)
	}
	return out
}

// refID names the queries of a panel A, B, and so on.
func refID(i int) string { return fmt.Sprintf("%c", 'A'+i) }

func (p panel) defaults() dashboard.FieldConfig {
	c := dashboard.FieldConfig{
		Unit: &p.unit, NoValue: &p.empty, Min: p.min, Max: p.max, Decimals: p.decimals,
		Mappings: mappings(p.states), Thresholds: p.scale.model(), Custom: p.custom(),
		Color: &dashboard.FieldColor{Mode: dashboard.FieldColorModeIdPaletteClassic},
	}
	if p.kind == bars {
		c.Decimals = f(0)
	}
	switch p.kind {
	case number, ranking:
		c.Color.Mode = dashboard.FieldColorModeIdThresholds
		c.Mappings = append(c.Mappings, unmeasured(p.empty))
	case listing:
		c.Color.Mode = dashboard.FieldColorModeIdThresholds
	case timeline:
		// By thresholds, Grafana merges values to ranges and drops their words.
	case lines, bars:
		c.Color = &dashboard.FieldColor{Mode: dashboard.FieldColorModeIdFixed, FixedColor: cog.ToPtr(palette[0])}
	}
	for _, l := range p.links {
		c.Links = append(c.Links, l.model())
	}
	return c
}

func (t jump) model() dashboard.DashboardLink {
	return dashboard.DashboardLink{Title: t.title, Type: dashboard.DashboardLinkTypeLink, Url: &t.url, Tags: []string{}}
}

func (p panel) overrides() []dashboard.DashboardFieldConfigSourceOverrides {
	out := []dashboard.DashboardFieldConfigSourceOverrides{}
	for _, c := range p.allColumns() {
		out = append(out, c.override())
	}
	if p.kind == lines || p.kind == bars {
		out = append(out, nameColours(p.queries)...)
	}
	if p.matrix != nil {
		out = append(out, override("byType", "number", property("noValue", noCell)), override("byType", "string", asText))
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

// Sizes that panels have.
func tile(p panel) panel       { return p.sized(4, 4) }
func wideTile(p panel) panel   { return p.sized(6, 4) }
func narrowTile(p panel) panel { return p.sized(3, 4) }
func quarter(p panel) panel    { return p.sized(6, 8) }
func third(p panel) panel      { return p.sized(8, 8) }
func tall(p panel) panel       { return p.sized(8, 11) } // for the legend of eight GPUs
func half(p panel) panel       { return p.sized(12, 8) }
func whole(p panel) panel      { return p.sized(24, 9) }

func (p panel) sized(width, height uint32) panel {
	p.width, p.height = width, height
	return p
}

// f is a number that may be absent.
func f(x float64) *float64 { return &x }
