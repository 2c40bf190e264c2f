package main

import (
	"cmp"

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

// healthStates are the values of healthOf, and the words of the label severity.
var healthStates = []state{
	{"0", "healthy", green}, {"1", "degraded", orange}, {"2", "failed", red}, {"3", "unknown", purple},
}

var (
	severities = []state{{"critical", "critical", red}, {"warning", "warning", orange}, {"info", "info", blue}}
	verdicts   = []state{{"failed", "failed", red}, {"degraded", "degraded", orange}, {"unknown", "unknown", purple}}
	upStates   = []state{{"1", "up", green}, {"0", "down", red}}
	yesBad     = []state{{"0", "no", green}, {"1", "yes", red}}
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

// healthOf is the verdict on the devices of a selector as a number, see
// healthStates.
func healthOf(selector string) string {
	is := func(s string) string { return `accel_device_health{` + selector + `,state="` + s + `"}` }
	return "(" + is("degraded") + " + ignoring (state) 2 * " + is("failed") + " + ignoring (state) 3 * " + is("unknown") + ")"
}
