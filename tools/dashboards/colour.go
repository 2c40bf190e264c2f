package main

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// Colours have the same meaning everywhere: green is healthy or in use, blue is free or
// neutral, yellow is idle or worth a look, orange is degraded, red is failed,
// purple is unknown.
const (
	green  = "green"
	blue   = "blue"
	yellow = "yellow"
	orange = "orange"
	red    = "red"
	purple = "purple"
	plain  = "text"
	none   = "transparent"
)

// palette is for devices and for the parts of one panel. It has no colour of a state, so
// that a healthy device is never drawn in red.
var palette = []string{"#5794F2", "#B877D9", "#00B8D9", "#F78FB3", "#A0785A", "#8AB8FF", "#7C6CE0", "#9FA7B3"}

// ofDevices begins the legends whose series are devices.
var ofDevices = regexp.MustCompile(`^({{cluster}} {{host}} {{device}}|{{name}})`)

// manySeries reports whether a legend has the names of series, which are not known here.
func manySeries(queries []query) bool {
	return slices.ContainsFunc(queries, func(q query) bool { return strings.Contains(q.legend, "{{") })
}

// nameColours gives a device the colour of its index, or of its bus, which is the same in
// every panel; the parts of a panel differ. Other names have Grafana's palette by their
// place in the legend: a colour by name would be that of two names in each legend.
func nameColours(queries []query) []dashboard.DashboardFieldConfigSourceOverrides {
	var out []dashboard.DashboardFieldConfigSourceOverrides
	if slices.ContainsFunc(queries, func(q query) bool { return ofDevices.MatchString(q.legend) }) {
		for i, colour := range palette {
			out = append(out, override("byRegexp", deviceNumber(i), coloured(colour)))
		}
	}
	for i, q := range queries {
		if len(queries) > 1 && !strings.Contains(q.legend, "{{") {
			out = append(out, byName(q.legend, coloured(palette[i%len(palette)])))
		}
	}
	return out
}

// deviceNumber fits names with the number i or i+8, of a device or a partition, and FPGAs
// whose bus number ends with one of them.
func deviceNumber(i int) string {
	return fmt.Sprintf(`/\b(%d|%d)( |$)|[%[1]d%x]:0/`, i, i+len(palette), i+len(palette))
}

func coloured(c string) dashboard.DynamicConfigValue {
	return property("color", map[string]any{"mode": "fixed", "fixedColor": c})
}

// step is the colour of values from at on.
type step struct {
	at     float64
	colour string
}

// scale is the colours of a panel's values: base below the first step.
type scale struct {
	base  string
	steps []step
}

// bad is green, and red from the value up.
func bad(from float64) scale { return scale{green, []step{{from, red}}} }

// upFrom is green, and the colour from the value up.
func upFrom(from float64, colour string) scale { return scale{green, []step{{from, colour}}} }

// only is one colour for every value.
func only(colour string) scale { return scale{base: colour} }

func (s scale) model() *dashboard.ThresholdsConfig {
	base := cmp.Or(s.base, plain)
	t := &dashboard.ThresholdsConfig{
		Mode:  dashboard.ThresholdsModeAbsolute,
		Steps: []dashboard.Threshold{{Color: base}},
	}
	for _, s := range s.steps {
		t.Steps = append(t.Steps, dashboard.Threshold{Value: cog.ToPtr(s.at), Color: s.colour})
	}
	return t
}

// state is the word and colour of a value.
type state struct {
	value, word, colour string
}

// healthStates are the values of healthOf, the gravest last.
var healthStates = []state{
	{"0", "healthy", green}, {"1", "degraded", orange}, {"2", "unknown", purple}, {"3", "failed", red},
}

var (
	severities = []state{{"critical", "critical", red}, {"warning", "warning", orange}, {"info", "info", blue}}
	verdicts   = []state{{"failed", "failed", red}, {"degraded", "degraded", orange}, {"unknown", "unknown", purple}}
	incidents  = []state{
		{"failed", "failed", red},
		{"limit_critical", "at a limit", red},
		{"unknown", "unknown", purple},
		{"replace_soon", "replace soon", orange},
		{"reset_due", "reset due", orange},
		{"degraded", "degraded", orange},
		{"throttled", "throttled", yellow},
	}
	upStates = []state{{"1", "up", green}, {"0", "down", red}}
)

func mappings(states []state) []dashboard.ValueMapping {
	if len(states) == 0 {
		return nil
	}
	options := map[string]dashboard.ValueMappingResult{}
	for i, s := range states {
		options[s.value] = dashboard.ValueMappingResult{Text: cog.ToPtr(s.word), Color: cog.ToPtr(s.colour), Index: cog.ToPtr(int32(i))}
	}
	return []dashboard.ValueMapping{{ValueMap: &dashboard.ValueMap{Type: dashboard.MappingTypeValueToText, Options: options}}}
}

// unmeasured keeps a value that is not there from the colour of 0.
func unmeasured(text string) dashboard.ValueMapping {
	return dashboard.ValueMapping{SpecialValueMap: &dashboard.SpecialValueMap{
		Type: dashboard.MappingTypeSpecialValue,
		Options: dashboard.DashboardSpecialValueMapOptions{
			Match:  dashboard.SpecialValueMatchNullAndNan,
			Result: dashboard.ValueMappingResult{Text: cog.ToPtr(text), Color: cog.ToPtr(none)},
		},
	}}
}

// verdict is the devices of the selector that have one of the verdicts.
func verdict(selector, states string) string {
	return `accel_device_health{` + selector + `,state=~"` + states + `"} == 1`
}

// healthOf is the verdict on the devices of a selector as a number, see healthStates.
func healthOf(selector string) string {
	all := ""
	for i, s := range healthStates {
		if i > 0 {
			all += " or "
		}
		all += s.value + " * (" + verdict(selector, s.word) + ")"
	}
	return "max without (state) (" + all + ")"
}

// Thresholds of the rules in rules/*.yaml that several panels show: a colour changes
// where an alert fires.
const (
	nearLimitCelsius = 3
	hotThrottleShare = 0.1
	idleAfter        = 1800 // seconds
	neverUsedAfter   = 3600 // seconds
	underusedBelow   = 0.2
	idleExempt       = "kube-system|gpu-operator" // namespaces
)
