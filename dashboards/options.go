package main

import (
	"slices"

	"github.com/grafana/grafana-foundation-sdk/go/bargauge"
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/statetimeline"
	"github.com/grafana/grafana-foundation-sdk/go/table"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

var tooltip = common.VizTooltipOptions{Mode: common.TooltipDisplayModeMulti, Sort: common.SortOrderDescending}

// options are those of the kind of panel as a whole.
func (p panel) options() any {
	last := common.ReduceDataOptions{Calcs: []string{"lastNotNull"}, Fields: cog.ToPtr("")}
	switch p.kind {
	case number:
		o := stat.Options{
			ReduceOptions: last, ColorMode: common.BigValueColorModeBackground, GraphMode: common.BigValueGraphModeNone,
			TextMode: common.BigValueTextModeAuto, JustifyMode: common.BigValueJustifyModeAuto, WideLayout: true,
			PercentChangeColorMode: common.PercentChangeColorModeStandard, Orientation: common.VizOrientationAuto,
		}
		if p.words {
			o.TextMode = common.BigValueTextModeName
		}
		if p.both {
			o.TextMode = common.BigValueTextModeValueAndName
		}
		return o
	case ranking:
		return bargauge.Options{
			ReduceOptions: last, DisplayMode: common.BarGaugeDisplayModeBasic, ValueMode: common.BarGaugeValueModeColor,
			NamePlacement: common.BarGaugeNamePlacementLeft, Sizing: common.BarGaugeSizingManual,
			ShowUnfilled: true, MinVizWidth: 8, MinVizHeight: 16, MaxVizHeight: 24, Orientation: common.VizOrientationHorizontal,
			Legend: common.VizLegendOptions{DisplayMode: common.LegendDisplayModeList, Placement: common.LegendPlacementBottom, Calcs: []string{}},
		}
	case listing:
		height := common.TableCellHeightSm
		if slices.ContainsFunc(p.columns, func(c column) bool { return c.wrapped }) {
			height = common.TableCellHeightMd // for two lines
		}
		return table.Options{ShowHeader: true, CellHeight: &height, SortBy: p.sortedBy()}
	case timeline:
		return statetimeline.Options{
			ShowValue: common.VisibilityModeAuto, RowHeight: 0.8, MergeValues: cog.ToPtr(true),
			AlignValue: cog.ToPtr(common.TimelineValueAlignmentLeft), Tooltip: tooltip,
			Legend: common.VizLegendOptions{DisplayMode: common.LegendDisplayModeList, Placement: common.LegendPlacementBottom, ShowLegend: false, Calcs: []string{}},
		}
	}
	return timeseries.Options{
		Tooltip: tooltip,
		Legend: common.VizLegendOptions{
			DisplayMode: common.LegendDisplayModeList, Placement: common.LegendPlacementBottom, ShowLegend: true, Calcs: p.calcs(),
		},
	}
}

// calcs are the values in the legend.
func (p panel) calcs() []string {
	if p.kind == bars {
		return []string{"sum"}
	}
	return []string{"lastNotNull", "max"}
}

// custom are the options that a single series may override.
func (p panel) custom() any {
	switch p.kind {
	case lines, bars:
		c := common.GraphFieldConfig{
			DrawStyle: cog.ToPtr(common.GraphDrawStyleLine), LineWidth: cog.ToPtr(1.0), FillOpacity: cog.ToPtr(0.0),
			ShowPoints: cog.ToPtr(common.VisibilityModeAuto), PointSize: cog.ToPtr(4.0),
			SpanNulls: &common.BoolOrFloat64{Bool: cog.ToPtr(false)},
			Stacking:  &common.StackingConfig{Mode: cog.ToPtr(common.StackingModeNone)},
		}
		if p.kind == bars {
			// Of a single event the bar would fill the panel.
			c.DrawStyle, c.FillOpacity, c.BarMaxWidth = cog.ToPtr(common.GraphDrawStyleBars), cog.ToPtr(80.0), cog.ToPtr(20.0)
		}
		if p.stacked {
			c.FillOpacity = cog.ToPtr(60.0)
			c.Stacking = &common.StackingConfig{Mode: cog.ToPtr(common.StackingModeNormal), Group: cog.ToPtr("A")}
		}
		// A line at 0 would scale the axis to 100, which is 10,000 %.
		if soft, ok := map[string]float64{"percentunit": 0.1, "none": 1}[p.unit]; ok && p.max == nil {
			c.AxisSoftMax = &soft
		}
		if p.limitLine {
			c.ThresholdsStyle = &common.GraphThresholdsStyleConfig{Mode: common.GraphThresholdsStyleModeDashed}
		}
		return c
	case timeline:
		return statetimeline.FieldConfig{LineWidth: cog.ToPtr(uint32(0)), FillOpacity: cog.ToPtr(uint32(80))}
	case listing:
		return map[string]any{"align": "auto", "minWidth": 80, "inspect": false, "filterable": false}
	}
	return nil
}
