package main

import (
	"slices"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/statetimeline"
	"github.com/grafana/grafana-foundation-sdk/go/table"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

// options are the settings of the whole panel, by its kind.
func (p panel) options() any {
	tooltip := common.VizTooltipOptions{Mode: common.TooltipDisplayModeMulti, Sort: common.SortOrderDescending}
	legend := common.VizLegendOptions{DisplayMode: common.LegendDisplayModeList, Placement: common.LegendPlacementBottom, Calcs: []string{}}
	switch p.kind {
	case number:
		// What is not named has Grafana's default.
		o := map[string]any{"colorMode": common.BigValueColorModeBackground, "graphMode": common.BigValueGraphModeNone, "reduceOptions": common.ReduceDataOptions{Calcs: []string{"lastNotNull"}}}
		if p.words {
			o["textMode"] = common.BigValueTextModeName
		}
		if p.both {
			o["textMode"] = common.BigValueTextModeValueAndName
		}
		return o
	case listing:
		height := common.TableCellHeightSm
		if slices.ContainsFunc(p.columns, func(c column) bool { return c.wrapped }) {
			height = common.TableCellHeightMd // for two lines
		}
		return table.Options{ShowHeader: true, CellHeight: &height, SortBy: p.sortedBy()}
	case timeline:
		return statetimeline.Options{
			ShowValue: common.VisibilityModeAuto, RowHeight: 0.8, MergeValues: cog.ToPtr(true),
			AlignValue: cog.ToPtr(common.TimelineValueAlignmentLeft), Tooltip: tooltip, Legend: legend,
		}
	}
	legend.ShowLegend, legend.Calcs = true, []string{"lastNotNull", "max"}
	if p.kind == bars {
		legend.Calcs = []string{"sum"}
	}
	return timeseries.Options{Tooltip: tooltip, Legend: legend}
}

// custom are the options that a single series may override.
func (p panel) custom() any {
	switch p.kind {
	case lines, bars:
		c := common.GraphFieldConfig{LineWidth: cog.ToPtr(1.0), SpanNulls: &common.BoolOrFloat64{Bool: cog.ToPtr(false)}}
		if p.kind == bars {
			// Without a limit the bar of a single event would fill the panel.
			c.DrawStyle, c.FillOpacity, c.BarMaxWidth = cog.ToPtr(common.GraphDrawStyleBars), cog.ToPtr(80.0), cog.ToPtr(20.0)
		}
		if p.stacked {
			c.FillOpacity = cog.ToPtr(60.0)
			c.Stacking = &common.StackingConfig{Mode: cog.ToPtr(common.StackingModeNormal), Group: cog.ToPtr("A")}
		}
		// A line at 0 would scale the axis to 100, which is 10,000 %, and a steady
		// temperature to a tenth of a degree.
		if soft, ok := map[string]float64{"percentunit": 0.1, "": 1, "celsius": 90}[p.unit]; ok && p.max == nil {
			c.AxisSoftMax = &soft
		}
		if p.unit == "celsius" {
			c.AxisSoftMin = f(0)
		}
		if p.limitLine {
			c.ThresholdsStyle = &common.GraphThresholdsStyleConfig{Mode: common.GraphThresholdsStyleModeDashed}
		}
		return c
	case timeline:
		return statetimeline.FieldConfig{LineWidth: cog.ToPtr(uint32(0)), FillOpacity: cog.ToPtr(uint32(80))}
	case listing:
		return map[string]any{"minWidth": leastWidth}
	}
	return nil
}
