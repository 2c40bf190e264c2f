package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kingpin/v2"

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
var foreignFamilies = regexp.MustCompile(`^(accel_(alertmanager|bundles|config|exporter|remediator|rules)_|accel[^_])`)

// unknownMetrics returns a line for each metric that rules read, and that has the
// name of a family of this exporter that does not exist.
func unknownMetrics(set *engine.Set) (lines []string) {
	var names []string
	for _, m := range collector.Table() {
		names = append(names, m.Name)
	}
	for _, m := range set.Unknown(func(name string) bool {
		return !strings.HasPrefix(name, "accel") || foreignFamilies.MatchString(name) || slices.Contains(names, name)
	}) {
		lines = append(lines, m.Error()+didYouMean("", strings.TrimPrefix(m.Text, "unknown metric "), names))
	}
	return lines
}

func warnUnknown(set *engine.Set, log *slog.Logger) {
	for _, line := range unknownMetrics(set) {
		log.Warn("Rule reads a metric that does not exist", "rule", line)
	}
}

// rulesCommand is `accel-exporter rules check`.
func rulesCommand(_ context.Context, args []string, stdout, stderr io.Writer) error {
	app := kingpin.New("accel-exporter rules", "Rules in Prometheus' format, as the exporter evaluates them. promtool runs their unit tests.")
	check := app.Command("check", "Check rule files and report every mistake with its file and line.")
	checked := check.Arg("FILE", "A path or a pattern.").Required().Strings()
	if _, err := parseArgs(app, args, stdout, stderr); err != nil {
		return err
	}
	set, err := engine.Check(stdout, *checked...)
	for _, line := range unknownMetrics(set) {
		fmt.Fprintln(stderr, "warning:", line)
	}
	if err != nil {
		return printConfigError(stderr, err)
	}
	return nil
}
