package main

import (
	"cmp"
	"fmt"
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

// palette is for series of devices, pods, reasons and so on. It has no colour of a
// state, so that a healthy device is never drawn in red.
var palette = []string{"#5794F2", "#B877D9", "#00B8D9", "#F78FB3", "#A0785A", "#8AB8FF", "#7C6CE0", "#9FA7B3"}

// nameColours gives each series a colour by its name, which is the same in every
// range and panel. Where names are known they differ; else devices have the colour of
// their index or bus, and other names that of their first and last character: a legend
// ends with what differs.
func nameColours(queries []query) []dashboard.DashboardFieldConfigSourceOverrides {
	var out, fixed []dashboard.DashboardFieldConfigSourceOverrides
	var devices, others bool
	for _, q := range queries {
		switch {
		case !strings.Contains(q.legend, "{{"):
			fixed = append(fixed, byName(q.legend, coloured(palette[len(fixed)%len(palette)])))
		case q.legend == "{{name}}", q.legend == "{{host}} {{device}} ":
			devices = true
		default:
			others = true
		}
	}
	for i, colour := range palette {
		if others {
			out = append(out, override("byRegexp", firstAndLast(i), coloured(colour)))
		}
	}
	for i, colour := range palette {
		if devices {
			out = append(out, override("byRegexp", deviceNumber(i), coloured(colour)))
		}
	}
	if len(queries) == 1 {
		fixed = nil // the colour of the panel
	}
	return append(out, fixed...)
}

func coloured(c string) dashboard.DynamicConfigValue {
	return property("color", map[string]any{"mode": "fixed", "fixedColor": c})
}

// firstAndLast fits the names whose first and last characters, from a slash on, add up
// to the class.
func firstAndLast(class int) string {
	const characters = "0123456789abcdefghijklmnopqrstuvwxyz"
	n := len(palette)
	var of [len(characters)]string
	for i, c := range characters {
		of[i%n] += string(c) + strings.TrimSuffix(strings.ToUpper(string(c)), string(c))
	}
	var pairs []string
	for first := range n {
		last := (class - first + n) % n
		pairs = append(pairs, "["+of[first]+"][^/]*["+of[last]+"]")
	}
	return "/(^|/)(" + strings.Join(pairs, "|") + ")$/"
}

// deviceNumber fits the devices whose index, or that of the partition, is of the
// class; of FPGAs, the number of the bus.
func deviceNumber(class int) string {
	var decimal, hex []string
	for i := class; i < 256; i += len(palette) {
		if i < 100 {
			decimal = append(decimal, fmt.Sprint(i))
		}
		hex = append(hex, fmt.Sprintf("%02x", i))
	}
	return `/(GPU|CPU|NVSwitch) (\d+:)?(` + strings.Join(decimal, "|") + `)(:\d+)?( |$)|[0-9a-f]{4}:(` + strings.Join(hex, "|") + `):/`
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

// low is red below the value, and green from it on.
func low(until float64) scale { return scale{red, []step{{until, green}}} }

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
	yesBad   = []state{{"0", "no", green}, {"1", "yes", red}}
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

// healthOf is the verdict on the devices of a selector as a number, see
// healthStates.
func healthOf(selector string) string {
	is := func(s string) string { return `(accel_device_health{` + selector + `,state="` + s + `"} == 1)` }
	return "max without (state) (0 * " + is("healthy") + " or " + is("degraded") + " or 2 * " + is("unknown") + " or 3 * " + is("failed") + ")"
}
