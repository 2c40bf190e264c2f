package main

import (
	"log/slog"
	"regexp"
	"slices"
	"strings"

	"github.com/accel-exporter/accel-exporter/collector"
	"github.com/accel-exporter/accel-exporter/internal/config/strict"
	"github.com/accel-exporter/accel-exporter/rules/engine"
)

// rulesInput are the files of the rules as an input.
func rulesInput(f *alertFlags, e *engine.Engine, log *slog.Logger) *input {
	files := strict.NewFile(f.files...)
	return &input{path: files.Path(), changed: files.Changed, load: func() (func(), error) {
		files.Know()
		set, err := f.rules()
		if err != nil {
			return nil, err
		}
		warnUnknown(set, log)
		return func() { e.Apply(set) }, nil
	}}
}

// foreignFamilies begin the names of families that are not in the metric table.
var foreignFamilies = regexp.MustCompile(`^(accel_(alertmanager|bundles|config|exporter|remediator|rules|traces)_|accel[^_])`)

// unknownMetrics returns a line for each metric that rules read, and that has the
// name of a family of this exporter that does not exist.
func unknownMetrics(set *engine.Set) (lines []string) {
	var names []string
	for _, m := range collector.Table() {
		if names = append(names, m.Name); m.Kind == collector.Histogram {
			names = append(names, m.Name+"_bucket", m.Name+"_sum", m.Name+"_count")
		}
	}
	for _, m := range set.Unknown(func(name string) bool {
		return !strings.HasPrefix(name, "accel") || foreignFamilies.MatchString(name) || slices.Contains(names, name)
	}) {
		lines = append(lines, m.Error()+didYouMean("", strings.TrimPrefix(m.Text, "unknown metric "), names))
	}
	return lines
}

// warnDropped logs a line for each rule that reads a metric which metrics.drop leaves
// out: it yields nothing on this node.
func warnDropped(f *flags, cfg *configuration, log *slog.Logger) {
	if f.alerts.builtin || len(f.alerts.files) > 0 || len(cfg.alertmanager.Endpoints) > 0 {
		for _, line := range droppedMetrics(&f.alerts, cfg) {
			log.Warn("Rule reads a metric that is left out", "rule", line)
		}
	}
}

func droppedMetrics(f *alertFlags, cfg *configuration) (lines []string) {
	set, err := f.rules()
	if err != nil {
		return nil
	}
	dropped := cfg.Dropped()
	for _, m := range set.Unknown(func(name string) bool { return !slices.Contains(dropped, name) }) {
		m.Text = strings.TrimPrefix(m.Text, "unknown metric ") + " is left out by metrics.drop"
		lines = append(lines, m.Error())
	}
	return lines
}

func warnUnknown(set *engine.Set, log *slog.Logger) {
	for _, line := range unknownMetrics(set) {
		log.Warn("Rule reads a metric that does not exist", "rule", line)
	}
}
