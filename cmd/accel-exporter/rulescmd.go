package main

import (
	"context"
	"fmt"
	"io"

	"github.com/alecthomas/kingpin/v2"

	"github.com/accel-exporter/accel-exporter/rules/engine"
)

// rulesCommand is `accel-exporter rules check`.
func rulesCommand(_ context.Context, args []string, stdout, stderr io.Writer) error {
	app := kingpin.New("accel-exporter rules", "Rules in Prometheus' format, as the exporter evaluates them. promtool runs their unit tests.")
	check := app.Command("check", "Check rule files and report every mistake with its file and line.")
	checked := check.Arg("FILE", "A path or a pattern.").Required().Strings()
	if _, err := parseArgs(app, args, stdout, stderr); err != nil {
		return err
	}
	err := engine.Check(stdout, *checked...)
	if err == nil {
		err = printUnknown(stderr, *checked...)
	}
	if err != nil {
		return printConfigError(stderr, err)
	}
	return nil
}

// printUnknown warns of metrics that do not exist.
func printUnknown(w io.Writer, files ...string) error {
	set, err := engine.Load(files...)
	if err != nil {
		return err
	}
	for _, line := range unknownMetrics(set) {
		fmt.Fprintln(w, "warning:", line)
	}
	return nil
}
